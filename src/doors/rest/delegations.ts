/** Delegations: create, read, wait, list, erase; and their results. Limit: a list's filters apply within a bounded scan. */

import * as z from "zod";
import { delegate } from "../../engine/delegations/delegate.ts";
import { erase } from "../../engine/delegations/erase.ts";
import { list } from "../../engine/delegations/list.ts";
import { delegationJson, isSettled, readWhenReady } from "../../engine/delegations/read.ts";
import { results } from "../../engine/delegations/results.ts";
import { formatCursor, parseCursor } from "../../events/cursor.ts";
import {
  acceptedDelegationSchema,
  delegateRequestSchema,
  delegationFilterSchema,
  delegationPageSchema,
  delegationSchema,
  resultPageSchema,
} from "../../schema/delegation.ts";
import { LIMITS } from "../../schema/limits.ts";
import {
  delegationIdSchema,
  pageQuery,
  queryNumber,
  toInstant,
  waitSecondsSchema,
} from "../../schema/values.ts";
import { publicPath } from "../http/links.ts";
import { preferredWait } from "../http/prefer.ts";
import { type Route, route } from "../http/route.ts";
import { jsonText, noContent } from "../http/text-response.ts";
import { traceparentOf } from "../http/trace.ts";
import { waitForResult } from "../http/wait-for-result.ts";

const params = z.strictObject({
  /** The delegation. */
  id: delegationIdSchema,
});

export const delegationRoutes: readonly Route[] = [
  route({
    id: "delegate",
    method: "POST",
    path: "/v1/delegations",
    summary: "Delegate work to an agent",
    description:
      "Stores the work and answers 202 with the delegation. With `Prefer: wait=N` the broker waits up to N seconds for its end or a question, and answers 200 if that came. A 202 may already say `working`: a waiting worker can take the work at once.",
    body: delegateRequestSchema,
    responses: { 200: acceptedDelegationSchema, 202: acceptedDelegationSchema },
    notes: {
      requestHeaders: ["Idempotency-Key", "Prefer", "traceparent"],
      responseHeaders: ["Location", "Idempotency-Replayed"],
    },
    async handle(request, { body, raw }) {
      const { broker, principal } = request;
      const wait_seconds = preferredWait(request.header("prefer"), LIMITS.wait_seconds.value);
      // Opened first, so that a caller over its quota is refused before anything is written.
      const scope = wait_seconds === 0 ? null : request.openScope("polls");
      try {
        // In parallel, so that an unresponsive Redis delays the response only once.
        const present = broker.presence.cached(body.target);
        const accepted = await delegate(broker, principal, body, {
          traceparent: traceparentOf(request.header("traceparent")),
          idempotencyKey: request.idempotencyKey,
          body: raw,
        });
        const { id } = accepted.record;
        const [presence, record] = await Promise.all([
          present,
          scope === null ? accepted.record : waitForResult(request, accepted.record, wait_seconds, scope),
        ]);
        const status = accepted.replayed || (wait_seconds > 0 && isSettled(record)) ? 200 : 202;
        return jsonText(status, `${record.json.slice(0, -1)},"presence":${JSON.stringify(presence)}}`, {
          location: publicPath(broker.publicUrl(), `/v1/delegations/${id}`),
          ...(accepted.replayed && { "idempotency-replayed": "true" }),
        });
      } finally {
        scope?.release();
      }
    },
  }),
  route({
    id: "getDelegation",
    method: "GET",
    path: "/v1/delegations/{id}",
    summary: "Read a delegation",
    description:
      "With `wait_seconds`, waits until the delegation has ended or asks a question; with `after_version` too, until it changes. A wait that ends without either answers the delegation as it is.",
    params,
    query: z.strictObject({
      /** How long to wait until the delegation has ended or asks a question, up to 60 seconds. */
      wait_seconds: queryNumber(waitSecondsSchema).default(0),
      /** With `wait_seconds`: wait only until `version` is greater than this. */
      after_version: queryNumber(z.int().min(0)).optional(),
    }),
    responses: { 200: delegationSchema },
    async handle(request, { params: { id }, query: { wait_seconds, after_version } }) {
      const record = await request.withScope(wait_seconds, (signal) =>
        readWhenReady(request.broker, request.principal, id, { wait_seconds, after_version, signal }),
      );
      return jsonText(200, delegationJson(request.principal, record));
    },
  }),
  route({
    id: "deleteDelegation",
    method: "DELETE",
    path: "/v1/delegations/{id}",
    summary: "Erase a finished delegation",
    description:
      "Deletes its record, events, history and artifacts at once, instead of after the retention time. Only its delegator and the operator may do this.",
    params,
    responses: { 204: null },
    async handle(request, { params: { id } }) {
      await erase(request.broker, request.principal, id);
      return noContent();
    },
  }),
  route({
    id: "listDelegations",
    method: "GET",
    path: "/v1/delegations",
    summary: "List delegations, newest first",
    description:
      "Lists the delegations that the caller may see; all given filters apply. A page may have fewer entries than `limit`, or none: the list ends where `next_cursor` is null.",
    query: delegationFilterSchema.extend({
      /** `next_cursor` of the page before. Without one, the list begins. */
      cursor: z.string().min(1).max(256).optional(),
      /** How many entries at most, 1 to 100. */
      limit: queryNumber(z.int().min(1).max(100)).default(20),
    }),
    responses: { 200: delegationPageSchema },
    async handle(request, { query }) {
      const { records, next_cursor, scanned_to } = await list(request.broker, request.principal, query);
      const delegations = records.map(({ json }) => json).join(",");
      const rest = { next_cursor, scanned_to: scanned_to && toInstant(scanned_to) };
      return jsonText(200, `{"delegations":[${delegations}],${JSON.stringify(rest).slice(1)}`);
    },
  }),
  route({
    id: "listResults",
    method: "GET",
    path: "/v1/results",
    summary: "List the caller's results after a cursor",
    description:
      "Lists the caller's delegations that ended or asked a question after the cursor, oldest first, as they are now. A delegation that asked and later ended may come twice.",
    query: z.strictObject(pageQuery),
    responses: { 200: resultPageSchema },
    async handle(request, { query: { after, wait_seconds, limit } }) {
      const { broker, principal } = request;
      const from = parseCursor(after ?? "0", broker.shards.count, broker.shards.earlier);
      const { records, positions } = await request.withScope(wait_seconds, ({ signal }) =>
        results(broker, principal, from, { wait_seconds, limit, signal }),
      );
      const found = records.map(({ json }) => json).join(",");
      return jsonText(200, `{"results":[${found}],"cursor":${JSON.stringify(formatCursor(positions))}}`);
    },
  }),
];
