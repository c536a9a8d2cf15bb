/** Watching: SSE for who can hold a stream, JSON pages for who polls, with the same cursors. Limit: see stream.ts. */
import { z } from "zod";
import { read } from "../../engine/read.ts";
import { type EventFilter, follow, followOne, isPastEnd, now, subscribe } from "../../engine/watch.ts";
import { formatCursor, type Positions, parseCursor } from "../../events/cursor.ts";
import type { Watched } from "../../events/watch.ts";
import type { StoredDelegation } from "../../lifecycle/record.ts";
import { EVENT_TYPES, eventPageSchema } from "../../schema/event.ts";
import {
  agentNameSchema,
  contextIdSchema,
  delegationIdSchema,
  principalSchema,
  queryNumber,
  waitSecondsSchema,
} from "../../schema/values.ts";
import type { Call } from "../call.ts";
import { jsonText, type Route, route } from "../route.ts";
import { type Frame, sse, toFrame } from "../stream.ts";

const cursor = z.string().min(1).max(4096);
const page = {
  after: cursor.optional(),
  wait_seconds: queryNumber(waitSecondsSchema).optional(),
  limit: queryNumber(z.int().min(1).max(1000)).optional(),
};
type Page = { wait_seconds?: number | undefined; limit?: number | undefined };

const wantsStream = (call: Call): boolean =>
  /text\/event-stream/i.test(call.headers.get("accept") ?? "text/event-stream");
const cursorOf = (call: Call, after: string | undefined): string | undefined =>
  after ?? call.headers.get("last-event-id") ?? undefined;

async function* frames(events: AsyncIterable<Watched>): AsyncGenerator<Frame> {
  for await (const event of events) yield toFrame(event);
}

function snapshot(record: StoredDelegation): Frame {
  const head = JSON.stringify({ id: record.event_id, type: "DELEGATION_SNAPSHOT", delegation_id: record.id });
  const json = `${head.slice(0, -1)},"delegation":${record.json}}`;
  return { id: record.event_id, type: "DELEGATION_SNAPSHOT", json };
}

/**
 * Collects what is there, up to `limit`; when nothing is, waits for the first event. A moment of quiet ends
 * the page: whatever comes later is the next page's.
 */
async function collect(
  call: Call,
  start: string,
  { wait_seconds = 0, limit = 100 }: Page,
  first: readonly Frame[],
  open: (signal: AbortSignal) => AsyncIterable<Watched>,
): Promise<Response> {
  const events: string[] = first.map((frame) => frame.json);
  let cursor = first.at(-1)?.id ?? start;
  const hold = call.hold();
  const enough = new AbortController();
  const stop = () => enough.abort();
  hold.signal.addEventListener("abort", stop, { once: true });
  const patience = setTimeout(stop, events.length > 0 ? QUIET_MS : Math.max(QUIET_MS, wait_seconds * 1000));
  let quiet: NodeJS.Timeout | undefined;
  try {
    if (events.length < limit) {
      for await (const watched of open(enough.signal)) {
        const frame = toFrame(watched);
        events.push(frame.json);
        if (frame.id !== "") cursor = frame.id;
        if (events.length >= limit) break;
        clearTimeout(quiet);
        quiet = setTimeout(stop, QUIET_MS);
      }
    }
    hold.throwIfRevoked();
  } finally {
    clearTimeout(patience);
    clearTimeout(quiet);
    hold.release();
  }
  return jsonText(200, `{"events":[${events.join(",")}],"cursor":${JSON.stringify(cursor)}}`);
}

const QUIET_MS = 20;

export const eventRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/v1/events",
    summary: "Every event that concerns the caller, live and by cursor.",
    query: z.strictObject({
      ...page,
      delegator: principalSchema.optional(),
      target: agentNameSchema.optional(),
      delegation_id: delegationIdSchema.optional(),
      context_id: contextIdSchema.optional(),
      types: z
        .string()
        .transform((text) => text.split(","))
        .pipe(z.array(z.enum(EVENT_TYPES)))
        .optional(),
    }),
    answers: { 200: eventPageSchema },
    async handle(call, { query: { after, wait_seconds, limit, ...filter } }) {
      const { broker } = call;
      const subscription = await subscribe(broker, call.principal, filter satisfies EventFilter);
      const given = cursorOf(call, after);
      const positions: Positions =
        given === undefined ? await now(broker) : parseCursor(given, broker.shards.count);
      const open = (signal: AbortSignal) => follow(broker, subscription, positions, signal);
      if (wantsStream(call)) return sse(call, (signal) => frames(open(signal)));
      return collect(call, formatCursor(positions), { wait_seconds, limit }, [], open);
    },
  }),
  route({
    method: "GET",
    path: "/v1/delegations/{id}/events",
    summary: "One delegation's events: a snapshot first, or what follows a cursor, up to its end.",
    params: z.strictObject({ id: delegationIdSchema }),
    query: z.strictObject(page),
    answers: { 200: eventPageSchema, 204: null },
    async handle(call, { params: { id }, query: { after, ...rest } }) {
      const { broker } = call;
      const record = await read(broker, call.principal, id);
      const given = cursorOf(call, after);
      const [from = "0-0"] = given === undefined ? [record.event_id] : parseCursor(given, 1);
      if (given !== undefined && isPastEnd(record, from)) return new Response(null, { status: 204 });
      const first = given === undefined ? [snapshot(record)] : [];
      const open = (signal: AbortSignal): AsyncIterable<Watched> =>
        first.length > 0 && record.finished ? nothing() : followOne(broker, record, from, signal);
      if (!wantsStream(call)) return collect(call, from, rest, first, open);
      return sse(call, async function* (signal) {
        yield* first;
        yield* frames(open(signal));
      });
    },
  }),
];

async function* nothing(): AsyncGenerator<Watched> {}
