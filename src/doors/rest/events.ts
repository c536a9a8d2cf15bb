/** Events as a stream (SSE) or as JSON pages, with the same cursors. */
import * as z from "zod";
import { read } from "../../engine/delegations/read.ts";
import {
  collectPage,
  delegationEvents,
  type EventFilter,
  isPastEnd,
  now,
  subscribe,
  subscribedEvents,
} from "../../engine/events/subscribe.ts";
import { formatCursor, type Positions, parseCursor } from "../../events/cursor.ts";
import type { ReplayPace } from "../../events/replay-pace.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { EVENT_TYPES, eventPageSchema } from "../../schema/event.ts";
import {
  agentNameSchema,
  contextIdSchema,
  delegationIdSchema,
  pageQuery,
  principalSchema,
} from "../../schema/values.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { prefersStream } from "../http/accept.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { EventStream, type Frame, toFrame } from "../http/event-stream.ts";
import { type Route, route } from "../http/route.ts";
import { jsonText, noContent } from "../http/text-response.ts";

export const wantsStream = (request: AuthenticatedRequest): boolean =>
  prefersStream(request.header("accept") ?? "");

/** A browser reconnects to the same URL and sends its cursor in the header; an empty header counts as absent. */
export const cursorOf = (request: AuthenticatedRequest, after: string | undefined): string | undefined =>
  request.header("last-event-id") || after;

function snapshot(record: StoredDelegation): Frame {
  const head = JSON.stringify({
    id: record.get("event_id"),
    type: "DELEGATION_SNAPSHOT",
    delegation_id: record.id,
  });
  const json = `${head.slice(0, -1)},"delegation":${record.json}}`;
  return { id: record.get("event_id"), type: "DELEGATION_SNAPSHOT", json };
}

export const sizeOf = ({ json }: Frame): number => json.length;

export function pageText(events: readonly Frame[], positions: Positions): string {
  const cursor = JSON.stringify(formatCursor(positions));
  return `{"events":[${events.map(({ json }) => json).join(",")}],"cursor":${cursor}}`;
}

export const eventRoutes: readonly Route[] = [
  route({
    id: "listEvents",
    method: "GET",
    path: "/v1/events",
    summary: "Events of all work of the caller",
    description:
      "Answers a page of the events that concern the caller, after a cursor. Without a cursor the page is empty and has the cursor of now. With `Accept: text/event-stream` the answer is a stream without an end.",
    query: z.strictObject({
      ...pageQuery,
      /** Only work that this principal delegated. */
      delegator: principalSchema.optional(),
      /** Only work for this agent. */
      target: agentNameSchema.optional(),
      /** Only this delegation. */
      delegation_id: delegationIdSchema.optional(),
      /** Only this conversation. */
      context_id: contextIdSchema.optional(),
      /** Only these types of events: one or more, separated by commas. */
      types: z
        .string()
        .transform((text) => text.split(","))
        .pipe(z.array(z.enum(EVENT_TYPES)))
        .optional(),
    }),
    responses: { 200: eventPageSchema },
    notes: { requestHeaders: ["Last-Event-ID"], streams: true },
    async handle(request, { query: { after, wait_seconds, limit, ...filter } }) {
      const { broker } = request;
      const subscription = await subscribe(broker, request.principal, filter satisfies EventFilter);
      const given = cursorOf(request, after);
      const positions: Positions =
        given === undefined
          ? await now(broker)
          : parseCursor(given, broker.shards.count, broker.shards.earlier);
      const open = (signal: StopSignal, pace?: ReplayPace) =>
        subscribedEvents(broker, subscription, positions, signal, pace);
      if (wantsStream(request)) {
        const events = (signal: StopSignal) => open(signal, request.pace(signal));
        // A reader with a cursor resumes from that.
        return new EventStream(request, events, given === undefined ? { from: positions } : {});
      }
      const turn = () => broker.readLimiter.acquire(request.principal);
      const page = await request.withScope(wait_seconds, ({ signal }) =>
        collectPage(open, { wait_seconds, limit, signal, turn }, toFrame, sizeOf),
      );
      return jsonText(200, pageText(page.items, page.positions ?? positions));
    },
  }),
  route({
    id: "listDelegationEvents",
    method: "GET",
    path: "/v1/delegations/{id}/events",
    summary: "Events of one delegation",
    description:
      "Answers a page of the events after a cursor. Without a cursor, the page begins with a snapshot of the delegation. 204 says that nothing comes after the cursor any more. With `Accept: text/event-stream` the answer is a stream, which ends with the delegation.",
    params: z.strictObject({
      /** The delegation. */
      id: delegationIdSchema,
    }),
    query: z.strictObject(pageQuery),
    responses: { 200: eventPageSchema, 204: null },
    notes: { requestHeaders: ["Last-Event-ID"], streams: true },
    async handle(request, { params: { id }, query: { after, wait_seconds, limit } }) {
      const { broker } = request;
      const record = await read(broker, request.principal, id);
      const given = cursorOf(request, after);
      const [from = "0-0"] = given === undefined ? [record.get("event_id")] : parseCursor(given, 1);
      if (given !== undefined && isPastEnd(record, from)) return noContent();
      const first = given === undefined ? snapshot(record) : undefined;
      if (first && record.finished) {
        return wantsStream(request)
          ? new EventStream(request, null, { first })
          : jsonText(200, pageText([first], [from]));
      }
      const open = (signal: StopSignal, pace?: ReplayPace) =>
        delegationEvents(broker, record, from, signal, pace);
      if (wantsStream(request)) {
        const events = (signal: StopSignal) => open(signal, request.pace(signal));
        return new EventStream(request, events, first && { first });
      }
      // The snapshot is returned at once; only a reader with a cursor waits.
      const turn = () => broker.readLimiter.acquire(request.principal);
      const options = { wait_seconds: first ? 0 : wait_seconds, limit, turn };
      const page = await request.withScope(options.wait_seconds, ({ signal }) =>
        collectPage(open, { ...options, signal }, toFrame, sizeOf),
      );
      return jsonText(200, pageText([...(first ? [first] : []), ...page.items], page.positions ?? [from]));
    },
  }),
];
