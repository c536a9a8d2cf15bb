/** Agents: create, replace, change, read, list, pause, delete. Limit: only the agent and the operator see its settings. */
import * as z from "zod";
import type { Principal } from "../../engine/access/access.ts";
import { requireConditions } from "../../engine/agents/conditions.ts";
import { agentPage, type ListedAgent } from "../../engine/agents/list.ts";
import { loadOf } from "../../engine/agents/load.ts";
import { setPaused } from "../../engine/agents/pause.ts";
import { type Changed, patchAgent, putAgent } from "../../engine/agents/put.ts";
import { removeAgent } from "../../engine/agents/remove.ts";
import { type StoredAgent, tagOf } from "../../engine/agents/stored-agent.ts";
import type { Broker } from "../../engine/broker.ts";
import { workersOf } from "../../engine/leases/workers.ts";
import {
  type Agent,
  agentChangeSchema,
  agentPageSchema,
  agentPatchSchema,
  agentRequestSchema,
  agentSchema,
  workersSchema,
} from "../../schema/agent.ts";
import { agentLoadSchema } from "../../schema/agent-load.ts";
import { ErrandError } from "../../schema/errors.ts";
import { agentNameSchema, listQuery, toInstant } from "../../schema/values.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { hashOf, namesTag } from "../http/etags.ts";
import { a2aCardUrl } from "../http/links.ts";
import { type Route, route } from "../http/route.ts";
import { json, jsonText, noContent, TextResponse } from "../http/text-response.ts";

const params = z.strictObject({
  /** The agent's name. */
  agent: agentNameSchema,
});

async function describeAgent(broker: Broker, principal: Principal, agent: StoredAgent): Promise<Agent> {
  const { name } = agent;
  const [presence, counts, oldest_at] = await Promise.all([
    broker.presence.of(name),
    broker.agents.counts(name),
    broker.agents.oldestAt(name),
  ]);
  return toAgent(broker, principal, { ...agent, presence, counts, oldest_at });
}

function toAgent(broker: Broker, principal: Principal, agent: ListedAgent): Agent {
  const { name, spec, presence, counts, oldest_at } = agent;
  const own = principal.kind === "operator" || (principal.kind === "agent" && principal.name === name);
  return {
    name,
    description: spec.description,
    skills: spec.skills,
    version: spec.version,
    delivery: deliveryOf(agent, own),
    approvals: spec.approvals,
    tree_reads: spec.tree_reads,
    votes: spec.votes,
    risks: spec.risks,
    priority_ageing_seconds: spec.priority_ageing_seconds,
    serial_by: spec.serial_by,
    sticky_seconds: spec.sticky_seconds,
    ...(own && {
      accepts_from: spec.accepts_from,
      notify: spec.notify,
      delegator_weights: spec.delegator_weights,
    }),
    ...(own && spec.budgets !== null && { budgets: spec.budgets }),
    ...(own && { limits: spec.limits, backoff: spec.backoff }),
    paused: agent.paused,
    created_at: toInstant(agent.created_at),
    updated_at: toInstant(agent.updated_at),
    presence,
    counts,
    // The queue may begin with delayed work.
    oldest_waiting_at: counts.waiting > 0 && oldest_at !== null ? toInstant(oldest_at) : null,
    slots: slotsOf(agent),
    a2a_card_url: a2aCardUrl(broker.publicUrl(), name),
  };
}

function slotsOf({ spec: { limits }, presence, counts, paused }: ListedAgent): Agent["slots"] {
  const { max_working: most } = limits;
  const left = paused ? 0 : Math.max(0, (most ?? Number.POSITIVE_INFINITY) - counts.working);
  return { busy: counts.working, free: Math.min(presence.pollers, left), most };
}

function deliveryOf({ spec: { delivery }, credentials_set }: StoredAgent, own: boolean): Agent["delivery"] {
  if (!own || delivery.mode === "poll") return { mode: delivery.mode };
  return { ...delivery, credentials_set };
}

/** Of the answer to GET: it covers every byte, presence and counts too, so that a 304 hides nothing. */
const etagOf = (agent: StoredAgent, text: string): string => `"${tagOf(agent)}.${hashOf(text)}"`;

/** The answer to GET, and its ETag. */
async function taggedAgent({ broker, principal }: AuthenticatedRequest, agent: StoredAgent) {
  const text = JSON.stringify(await describeAgent(broker, principal, agent));
  return { text, etag: etagOf(agent, text) };
}
const conditional = { requestHeaders: ["If-Match", "If-None-Match"], responseHeaders: ["ETag"] } as const;

const conditionsOf = (request: AuthenticatedRequest) => ({
  ifMatch: request.header("if-match"),
  ifNoneMatch: request.header("if-none-match"),
});

async function changeResponse(
  request: AuthenticatedRequest,
  { agent, created, changed, reset }: Changed,
): Promise<TextResponse> {
  const agentJson = await describeAgent(request.broker, request.principal, agent);
  const headers = { etag: etagOf(agent, JSON.stringify(agentJson)) };
  return json(created ? 201 : 200, { ...agentJson, created, changed, reset }, headers);
}

const pauseRoute = (verb: "pause" | "resume", summary: string, description: string): Route =>
  route({
    id: `${verb}Agent`,
    method: "POST",
    path: `/v1/agents/{agent}/${verb}`,
    summary,
    description,
    params,
    responses: { 200: agentSchema },
    notes: conditional,
    async handle(request, { params: { agent: name } }) {
      const { broker, principal } = request;
      await setPaused(broker, principal, name, verb === "pause", conditionsOf(request));
      const { text, etag } = await taggedAgent(request, await broker.agents.get(name));
      return jsonText(200, text, { etag });
    },
  });

export const agentRoutes: readonly Route[] = [
  route({
    id: "replaceAgent",
    method: "PUT",
    path: "/v1/agents/{agent}",
    summary: "Create or fully replace an agent",
    description: "Settings that the body leaves out are reset to their defaults.",
    params,
    body: agentRequestSchema,
    responses: { 200: agentChangeSchema, 201: agentChangeSchema },
    notes: conditional,
    async handle(request, { params: { agent }, body }) {
      const put = await putAgent(request.broker, request.principal, agent, body, conditionsOf(request));
      return changeResponse(request, put);
    },
  }),
  route({
    id: "patchAgent",
    method: "PATCH",
    path: "/v1/agents/{agent}",
    summary: "Change some settings of an agent",
    description:
      "The body is a JSON Merge Patch (RFC 7396): settings that it leaves out stay, null resets one to its default, lists are replaced.",
    params,
    body: agentPatchSchema,
    responses: { 200: agentChangeSchema },
    notes: conditional,
    async handle(request, { params: { agent }, body }) {
      const patched = await patchAgent(request.broker, request.principal, agent, body, conditionsOf(request));
      return changeResponse(request, patched);
    },
  }),
  route({
    id: "getAgent",
    method: "GET",
    path: "/v1/agents/{agent}",
    summary: "Read an agent",
    description:
      "Answers the agent with its presence and the counts of its delegations. Its settings are visible to the agent and the operator only.",
    params,
    responses: { 200: agentSchema, 304: null },
    notes: conditional,
    async handle(request, { params: { agent: name } }) {
      const { ifMatch, ifNoneMatch } = conditionsOf(request);
      const agent = await request.broker.agents.get(name);
      requireConditions(name, agent, { ifMatch });
      const { text, etag } = await taggedAgent(request, agent);
      return namesTag(ifNoneMatch, etag)
        ? new TextResponse(304, null, { etag })
        : jsonText(200, text, { etag });
    },
  }),
  route({
    id: "listWorkers",
    method: "GET",
    path: "/v1/agents/{agent}/workers",
    summary: "List an agent's workers",
    description: "Answers when each worker was last seen, and which delegations it has leased.",
    params,
    responses: { 200: workersSchema },
    async handle(request, input) {
      return json(200, await workersOf(request.broker, request.principal, input.params.agent));
    },
  }),
  route({
    id: "getAgentLoad",
    method: "GET",
    path: "/v1/agents/{agent}/load",
    summary: "Read how much work waits for an agent",
    description:
      "Answers how many delegations are queued and leased, and how many more workers would have work now: for what starts workers.",
    params,
    responses: { 200: agentLoadSchema },
    async handle({ broker, principal }, { params: { agent } }) {
      return json(200, await loadOf(broker, principal, agent));
    },
  }),
  route({
    id: "listAgents",
    method: "GET",
    path: "/v1/agents",
    summary: "List agents by name",
    description: "Lists all agents in pages, each with its presence and the counts of its delegations.",
    query: z.strictObject(listQuery(agentNameSchema)),
    responses: { 200: agentPageSchema },
    async handle({ broker, principal }, { query: { cursor, limit } }) {
      const { agents, next } = await agentPage(broker, { after: cursor, limit });
      return json(200, {
        agents: agents.map((agent) => toAgent(broker, principal, agent)),
        next_cursor: next,
      });
    },
  }),
  route({
    id: "deleteAgent",
    method: "DELETE",
    path: "/v1/agents/{agent}",
    summary: "Delete an agent",
    description:
      "Deletes the agent and revokes its tokens. Refused with `agent_busy` while it has live delegations; with `force` these are canceled.",
    params,
    query: z.strictObject({
      /** `true`: live delegations to the agent are canceled. */
      force: z.enum(["true", "false"]).optional(),
    }),
    responses: { 204: null },
    notes: { requestHeaders: conditional.requestHeaders },
    async handle(request, { params: { agent: name }, query }) {
      const { broker, principal } = request;
      const isForced = query.force === "true";
      if (!(await removeAgent(broker, principal, name, isForced, conditionsOf(request)))) {
        throw new ErrandError("agent_busy", `Agent '${name}' has live delegations.`, {
          details: { counts: await broker.agents.counts(name) },
        });
      }
      return noContent();
    },
  }),
  pauseRoute(
    "pause",
    "Pause an agent",
    "Its workers get no work. Running work continues, and new delegations to it are queued.",
  ),
  pauseRoute("resume", "Resume an agent", "Its workers get work again."),
];
