/**
 * Creating and changing an agent: replaced whole, or merged with a patch. Limit: only the operator may change where the
 * broker calls out to.
 */
import { type AgentPatch, type AgentSpec, agentRequestSchema, type Delivery } from "../../schema/agent.ts";
import { ErrandError } from "../../schema/errors.ts";
import { invalidRequest } from "../../schema/issues.ts";
import { mergePatch } from "../../schema/merge-patch.ts";
import { type Principal, requireAgent } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { audit } from "../upkeep/audit.ts";
import { auditDetails, type Difference, differenceOf } from "./difference.ts";
import { type StoredAgent, tagOf } from "./store.ts";

/** The conditions of a change, as its headers state them. */
export interface Conditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

export interface Changed extends Difference {
  readonly agent: StoredAgent;
  readonly created: boolean;
}

const POLL: Delivery = { mode: "poll" };
const urlOf = (delivery: Delivery): string | undefined =>
  delivery.mode === "push" ? delivery.url : undefined;

/** Creates the agent, or replaces all of its settings. */
export function putAgent(
  broker: Broker,
  principal: Principal,
  name: string,
  spec: AgentSpec,
  conditions: Conditions = {},
): Promise<Changed> {
  return changeAgent(broker, principal, name, conditions, () => spec);
}

/** Merges a patch into the settings of an agent that exists. */
export function patchAgent(
  broker: Broker,
  principal: Principal,
  name: string,
  patch: AgentPatch,
  conditions: Conditions = {},
): Promise<Changed> {
  return changeAgent(broker, principal, name, conditions, (before) => {
    if (!before) throw new ErrandError("agent_unknown", `There is no agent '${name}'.`);
    return merged(before.spec, patch);
  });
}

function merged(spec: AgentSpec, patch: AgentPatch): AgentSpec {
  // The old mode's members must not be merged into the new mode.
  const base = patch.delivery ? { ...spec, delivery: undefined } : spec;
  return checked(mergePatch(base, patch));
}

function checked(value: unknown): AgentSpec {
  const parsed = agentRequestSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalidRequest(parsed.error, { where: "body", whole: "The agent" });
}

async function changeAgent(
  broker: Broker,
  principal: Principal,
  name: string,
  conditions: Conditions,
  next: (before: StoredAgent | null) => AgentSpec,
): Promise<Changed> {
  requireAgent(principal, name, "change it");
  let moves = false;
  let url: string | undefined;
  let after: AgentSpec | undefined;
  const before = await broker.agents.change(name, (standing) => {
    const spec = next(standing);
    requireConditions(name, standing, conditions);
    url = urlOf(spec.delivery);
    moves = url !== urlOf(standing?.spec.delivery ?? POLL);
    if (moves && principal.kind !== "operator") {
      throw new ErrandError(
        "forbidden",
        `Only the operator may change how work is delivered to agent '${name}'.`,
        { recovery: "Send `delivery` as it stands, or ask the operator." },
      );
    }
    if (url !== undefined) broker.egress.requireCallable(url, "delivery.url");
    after = spec;
    return spec;
  });
  // Also publishes what an earlier call wrote before its gateway died.
  if (moves || broker.pushAgents.has(name) !== (url !== undefined)) await broker.pushAgents.changed(name);
  // Not from the cache, which another gateway's change may not have reached.
  const agent = await broker.agents.read(name);
  if (!agent) throw new ErrandError("agent_unknown", `Agent '${name}' was deleted meanwhile.`);
  const spec = after ?? agent.spec;
  const difference = before ? differenceOf(before.spec, spec) : { changed: [], reset: [] };
  const isChanged = difference.changed.length + difference.reset.length > 0;
  if (!before) await audit(broker, principal, "agent.create", name);
  else if (isChanged)
    await audit(broker, principal, "agent.update", name, auditDetails(difference, before.spec, spec));
  // More may be handed out now.
  if (before && isChanged) broker.handoff.wake(name);
  return { agent, created: before === null, ...difference };
}

function requireConditions(name: string, standing: StoredAgent | null, conditions: Conditions): void {
  const { ifMatch, ifNoneMatch } = conditions;
  if (ifMatch !== undefined && !(standing && isNamed(standing, ifMatch))) {
    throw new ErrandError(
      "precondition_failed",
      standing
        ? `Agent '${name}' has changed: its ETag is "${tagOf(standing)}".`
        : `There is no agent '${name}'.`,
    );
  }
  if (ifNoneMatch !== undefined && standing && isNamed(standing, ifNoneMatch)) {
    throw new ErrandError(
      "precondition_failed",
      `Agent '${name}' exists: its ETag is "${tagOf(standing)}".`,
      {
        recovery: "Change it with PATCH, or replace it without If-None-Match.",
      },
    );
  }
}

/** Whether a list of ETags, or `*`, matches the agent. A weak tag never matches. */
const isNamed = (agent: StoredAgent, header: string): boolean =>
  header.split(",").some((tag) => ["*", `"${tagOf(agent)}"`].includes(tag.trim()));
