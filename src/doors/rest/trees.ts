/** Trees: who works on which part of a delegation, and how far it is. */
import * as z from "zod";
import { treeNodes } from "../../engine/delegations/nodes.ts";
import { collectPage, now } from "../../engine/events/subscribe.ts";
import { readRoot, treeEvents } from "../../engine/events/tree.ts";
import { formatCursor, parseCursor } from "../../events/cursor.ts";
import type { ReplayPace } from "../../events/replay-pace.ts";
import { treeEventPageSchema, treeSchema } from "../../schema/tree.ts";
import { delegationIdSchema, pageQuery } from "../../schema/values.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { EventStream, toFrame } from "../http/event-stream.ts";
import { type Route, route } from "../http/route.ts";
import { jsonText } from "../http/text-response.ts";
import { cursorOf, pageText, sizeOf, wantsStream } from "./events.ts";

export const treeRoutes: readonly Route[] = [
  route({
    id: "getTree",
    method: "GET",
    path: "/v1/delegations/{id}/tree",
    summary: "Read a tree: a delegation and everything delegated under it",
    description:
      "Answers the place, the agent and the state of each, up to 2000. The delegator of the root sees the whole tree, also what agents delegated further; `readable` says which it may read whole, by the setting `tree_reads` of the agent that works on it.",
    params: z.strictObject({
      /** The delegation at the top. */
      id: delegationIdSchema,
    }),
    responses: { 200: treeSchema },
    async handle({ broker, principal }, { params: { id } }) {
      // First, so that what happens meanwhile comes after the cursor.
      const positions = await now(broker);
      const nodes = await treeNodes(broker, principal, id);
      return jsonText(200, JSON.stringify({ nodes, cursor: formatCursor(positions) }));
    },
  }),
  route({
    id: "listTreeEvents",
    method: "GET",
    path: "/v1/delegations/{id}/tree/events",
    summary: "Watch a tree",
    description:
      "Answers a page of the events of a tree after a cursor, without contents. Without a cursor the page is empty and has the cursor of now. With `Accept: text/event-stream` the answer is a stream without an end. The delegation must be a root: one without a parent.",
    params: z.strictObject({
      /** The root of the tree. */
      id: delegationIdSchema,
    }),
    query: z.strictObject(pageQuery),
    responses: { 200: treeEventPageSchema },
    notes: { requestHeaders: ["Last-Event-ID"], streams: true },
    async handle(request, { params: { id }, query: { after, wait_seconds, limit } }) {
      const { broker, principal } = request;
      const root = await readRoot(broker, principal, id);
      const given = cursorOf(request, after);
      const positions =
        given === undefined
          ? await now(broker)
          : parseCursor(given, broker.shards.count, broker.shards.earlier);
      const open = (signal: StopSignal, pace?: ReplayPace) =>
        treeEvents(broker, principal, root, positions, signal, pace);
      if (wantsStream(request)) {
        const events = (signal: StopSignal) => open(signal, request.pace(signal));
        return new EventStream(request, events, given === undefined ? { from: positions } : {});
      }
      const turn = () => broker.readLimiter.acquire(principal);
      const page = await request.withScope(wait_seconds, ({ signal }) =>
        collectPage(open, { wait_seconds, limit, signal, turn }, toFrame, sizeOf),
      );
      return jsonText(200, pageText(page.items, page.positions ?? positions));
    },
  }),
];
