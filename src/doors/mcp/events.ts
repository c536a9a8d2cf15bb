/**
 * The Events extension of MCP (SEP-3415) over the broker's event log: `events/list` and `events/poll`. Experimental, as
 * the extension is. Limit: no `events/stream` and no `events/subscribe`; every event type is polled.
 */
import { ProtocolError } from "@modelcontextprotocol/server";
import * as z from "zod";
import { collectPage, now, subscribe, subscribedEvents } from "../../engine/events/subscribe.ts";
import { formatCursor, type Positions, parseCursor } from "../../events/cursor.ts";
import type { Entry } from "../../events/entry.ts";
import type { Watched } from "../../events/watch.ts";
import { TERMINAL_EVENT_TYPES } from "../../schema/event.ts";
import { invalidRequest, readAs } from "../../schema/issues.ts";
import { agentNameSchema, contextIdSchema, delegationIdSchema, toInstant } from "../../schema/values.ts";
import { toFrame } from "../http/event-stream.ts";
import type { McpContext } from "./context.ts";

export const EVENTS_EXTENSION = "io.modelcontextprotocol/events";

/** The extension's code for a name that the server does not have. */
const NOT_FOUND = -32011;
const NEXT_POLL_MS = 5_000;
const MAX_EVENTS = 100;

interface EventKind {
  readonly name: string;
  readonly description: string;
  readonly isWanted: (entry: Pick<Entry, "type" | "status">) => boolean;
}

const KINDS: readonly EventKind[] = [
  {
    name: "delegation.ended",
    description: "A delegation that you may see was completed, failed, rejected or canceled.",
    isWanted: ({ type }) => TERMINAL_EVENT_TYPES.includes(type),
  },
  {
    name: "delegation.question",
    description: "An agent asks a question, and its delegation waits for the answer.",
    isWanted: ({ status }) => status === "interrupted",
  },
  {
    name: "delegation.changed",
    description: "Anything happened to a delegation that you may see: each event of the broker's log.",
    isWanted: () => true,
  },
];

const argumentsSchema = z.strictObject({
  delegation_id: delegationIdSchema.optional(),
  context_id: contextIdSchema.optional(),
  target: agentNameSchema.optional(),
});
const text = (description: string) => ({ type: "string", description });
/** As the tools' schemas, without what some clients do not take. */
const INPUT_SCHEMA = {
  type: "object",
  properties: {
    delegation_id: text("only of this delegation"),
    context_id: text("only of this conversation"),
    target: text("only of delegations to this agent"),
  },
  additionalProperties: false,
};
const PAYLOAD_SCHEMA = {
  type: "object",
  properties: {
    type: text("DELEGATION_SENT, DELEGATION_STATUS, DELEGATION_COMPLETE or DELEGATION_FAILED"),
    status: text("the kind of a DELEGATION_STATUS"),
    delegation_id: text("its delegation"),
    state: text("the state after the event"),
    at: text("when it happened"),
  },
  required: ["type", "delegation_id", "state", "at"],
};

export const listEventsParams = z.looseObject({ cursor: z.string().nullish() });
export const pollEventsParams = z.looseObject({
  name: z.string(),
  arguments: z.unknown().optional(),
  cursor: z.string().nullish(),
  maxEvents: z.int().min(1).nullish(),
  maxAgeMs: z.number().min(0).nullish(),
});

export const listEvents = () => ({
  resultType: "complete",
  events: KINDS.map(({ name, description }) => ({
    name,
    description,
    delivery: ["poll"],
    inputSchema: INPUT_SCHEMA,
    payloadSchema: PAYLOAD_SCHEMA,
  })),
});

/** The events after the cursor. Without one, there are none: the answer is where to begin. */
export async function pollEvents(
  context: McpContext,
  { name, arguments: given, cursor, maxEvents, maxAgeMs }: z.output<typeof pollEventsParams>,
) {
  const kind = KINDS.find((one) => one.name === name);
  if (!kind)
    throw new ProtocolError(NOT_FOUND, `There is no event type '${name.slice(0, 128)}'.`, { kind: "event" });
  const checked = readAs(argumentsSchema, given ?? {});
  if (!checked.success) throw invalidRequest(checked.error, { where: "arguments", whole: "The arguments" });
  const { broker, principal } = context;
  const { shards } = broker;
  const subscription = await subscribe(broker, principal, checked.data);
  const answer = (
    events: readonly object[],
    positions: Positions,
    more = { truncated: false, hasMore: false },
  ) => ({
    resultType: "complete",
    events,
    cursor: formatCursor(positions),
    ...more,
    nextPollMs: more.hasMore ? 0 : NEXT_POLL_MS,
  });
  if (cursor == null) return answer([], await now(broker));
  const after = parseCursor(cursor, shards.count, shards.earlier);
  const oldest = maxAgeMs == null ? 0 : Date.now() - maxAgeMs;
  let truncated = false;
  const limit = Math.min(maxEvents ?? MAX_EVENTS, MAX_EVENTS);
  const take = (event: Watched) => {
    if ("reset" in event) truncated = true;
    if (!("entry" in event) || !kind.isWanted(event.entry)) return undefined;
    if (event.entry.at < oldest) {
      truncated = true;
      return undefined;
    }
    const frame = toFrame(event);
    return frame && { id: frame.id, at: event.entry.at, json: frame.json };
  };
  const { items, positions } = await context.runWaiting(0, (signal) =>
    collectPage(
      (stop) => subscribedEvents(broker, subscription, after, stop),
      { wait_seconds: 0, limit, signal, turn: () => broker.readLimiter.acquire(principal) },
      take,
      ({ json }) => json.length,
    ),
  );
  const events = items.map(({ id, at, json }) => ({
    eventId: id,
    name,
    timestamp: toInstant(at),
    data: JSON.parse(json),
    cursor: id,
  }));
  return answer(events, positions ?? after, { truncated, hasMore: items.length >= limit });
}
