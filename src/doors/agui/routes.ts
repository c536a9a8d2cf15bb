/**
 * AG-UI 1.0 over HTTP and server-sent events: every agent is an AG-UI agent. A run that is refused before it begins is an
 * HTTP error; a later failure is the stream's `RUN_ERROR`.
 */
import * as z from "zod";
import type { StoredAgent } from "../../engine/agents/stored-agent.ts";
import { type AgUiCapabilities, agUiCapabilitiesSchema, agUiEventSchema } from "../../schema/ag-ui-event.ts";
import { runAgentInputSchema } from "../../schema/ag-ui-input.ts";
import { ERRORS } from "../../schema/errors.ts";
import type { Presence } from "../../schema/presence.ts";
import { agentNameSchema } from "../../schema/values.ts";
import type { Log } from "../../telemetry/log.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { EventStream, toReader } from "../http/event-stream.ts";
import { toErrandError } from "../http/problem.ts";
import { type Route, route } from "../http/route.ts";
import { jsonText } from "../http/text-response.ts";
import { begin } from "./begin.ts";
import type { Run } from "./find.ts";
import { metadataOf } from "./messages.ts";
import { RunStream } from "./run.ts";

const params = z.strictObject({ agent: agentNameSchema });

async function startRun(run: Run): Promise<EventStream> {
  const { request } = run;
  const { broker, requestId } = request;
  // Reserved first, so that a run whose work is accepted always gets its stream.
  const scope = request.openScope("streams");
  const begun = await begin(run).catch((error: unknown) => {
    scope.release();
    throw error;
  });
  const stream = new RunStream(run, begun);
  const { id } = begun.record;
  return new EventStream(toReader(request, scope), framesOf(stream, { id, log: broker.log, requestId }));
}

/** A function of its own, so that its closure does not keep the input, which may be large. */
function framesOf(stream: RunStream, { id, log, requestId }: { id: string; log: Log; requestId: string }) {
  return async function* (signal: StopSignal) {
    try {
      for await (const event of stream.events(signal)) yield { json: JSON.stringify(event) };
    } catch (error) {
      const { code, message, context } = toErrandError(error, log, requestId, "GET");
      const { category, retryable, recovery } = ERRORS[code];
      const more = {
        category,
        retryable,
        recovery: context.recovery ?? recovery,
        request_id: requestId,
        ...(context.details && { details: context.details }),
      };
      const metadata = metadataOf(id, more);
      yield { json: JSON.stringify({ type: "RUN_ERROR", message, code, metadata }) };
    }
  };
}

export const agUiRoutes: readonly Route[] = [
  route({
    id: "runAgent",
    method: "POST",
    path: "/ag-ui/{agent}",
    summary: "Run an agent by AG-UI 1.0",
    description: "Delegates, attaches, answers, follows up or cancels, and streams what happens.",
    params,
    body: runAgentInputSchema,
    responses: { 200: agUiEventSchema },
    notes: { requestHeaders: ["traceparent"], streams: true },
    handle: (request, { params: { agent }, body: input }) => startRun({ request, agent, input }),
  }),
  route({
    id: "getCapabilities",
    method: "GET",
    path: "/ag-ui/{agent}/capabilities",
    summary: "Read an agent's capabilities",
    description: "Answers what the agent can do, in the form of AG-UI, and whether its workers poll.",
    params,
    responses: { 200: agUiCapabilitiesSchema },
    async handle({ broker }, { params: { agent } }) {
      const [found, presence] = await Promise.all([broker.agents.get(agent), broker.presence.cached(agent)]);
      return jsonText(200, JSON.stringify(toCapabilities(found, presence)));
    },
  }),
];

/** An agent's capabilities in AG-UI's form. AG-UI defines no address for them; its clients look below the agent's URL. */
function toCapabilities({ name, spec, paused }: StoredAgent, presence: Presence): AgUiCapabilities {
  const { description, version, approvals } = spec;
  return {
    identity: {
      ...{ name, type: "errand", version: version || "1" },
      ...(description !== "" && { description }),
      metadata: { errand: { presence, paused } },
    },
    transport: {
      ...{ streaming: true, websocket: false, httpBinary: false, pushNotifications: false },
      // A broken stream cannot be continued; a new run can show the same delegation.
      resumable: false,
    },
    tools: { supported: false, clientProvided: false },
    state: { snapshots: true, deltas: true, persistentState: true },
    multiAgent: { supported: true, delegation: true },
    reasoning: { supported: false },
    humanInTheLoop: {
      ...{ supported: true, approvals: true, interventions: true, interrupts: true },
      approveWithEdits: true,
    },
    custom: { errand: { attach: true, follow_up: true, cancel: true, auto_approve: approvals !== "person" } },
  };
}
