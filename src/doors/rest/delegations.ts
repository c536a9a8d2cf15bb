/** Delegating, reading, waiting and canceling. Limit: one delegation at a time; lists come with their indexes. */
import { z } from "zod";
import { cancel } from "../../engine/cancel.ts";
import { delegate } from "../../engine/delegate.ts";
import { readWhenReady } from "../../engine/read.ts";
import {
  acceptedDelegationSchema,
  cancelRequestSchema,
  delegateRequestSchema,
  delegationSchema,
} from "../../schema/delegation.ts";
import { delegationIdSchema, queryNumber, waitSecondsSchema } from "../../schema/values.ts";
import type { Call } from "../call.ts";
import { jsonText, type Route, route } from "../route.ts";

const params = z.strictObject({ id: delegationIdSchema });
/** The W3C form; anything else is somebody's mistake and not worth refusing work for. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** `Prefer: wait=N`, in seconds, at most 60; 0 when it is absent. */
function preferredWait(call: Call): number {
  const wait = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})/i.exec(call.headers.get("prefer") ?? "")?.[1];
  return Math.min(Number(wait ?? 0), 60);
}

export const delegationRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/delegations",
    summary: "Delegate a task or a message to an agent; with `Prefer: wait=N`, wait for its end.",
    body: delegateRequestSchema,
    answers: { 200: acceptedDelegationSchema, 202: acceptedDelegationSchema },
    async handle(call, { body, raw }) {
      const { broker, principal, headers } = call;
      const trace = headers.get("traceparent") ?? "";
      const accepted = await delegate(broker, principal, body, {
        traceparent: TRACEPARENT.test(trace) ? trace : undefined,
        idempotencyKey: headers.get("idempotency-key") ?? undefined,
        body: raw,
      });
      const wait_seconds = preferredWait(call);
      const { id } = accepted.record;
      const [presence, record] = await Promise.all([
        broker.presences.of(body.target),
        wait_seconds === 0
          ? accepted.record
          : call.whileHeld((signal) => readWhenReady(broker, principal, id, { wait_seconds, signal })),
      ]);
      const settled = record.finished || record.state.endsWith("_required");
      const status = accepted.replayed || (wait_seconds > 0 && settled) ? 200 : 202;
      return jsonText(status, `${record.json.slice(0, -1)},"presence":${JSON.stringify(presence)}}`, {
        location: `/v1/delegations/${id}`,
        ...(accepted.replayed && { "idempotency-replayed": "true" }),
      });
    },
  }),
  route({
    method: "GET",
    path: "/v1/delegations/{id}",
    summary: "A delegation as it stands, or once it is finished, asks something, or moves on.",
    params,
    query: z.strictObject({
      wait_seconds: queryNumber(waitSecondsSchema).default(0),
      after_version: queryNumber(z.int().min(0)).optional(),
    }),
    answers: { 200: delegationSchema },
    async handle(call, { params: { id }, query: { wait_seconds, after_version } }) {
      const record = await call.whileHeld((signal) =>
        readWhenReady(call.broker, call.principal, id, { wait_seconds, after_version, signal }),
      );
      return jsonText(200, record.json);
    },
  }),
  route({
    method: "POST",
    path: "/v1/delegations/{id}/cancel",
    summary: "Cancel it; the holder of its lease learns at once.",
    params,
    body: cancelRequestSchema,
    answers: { 200: delegationSchema },
    async handle(call, { params: { id }, body }) {
      return jsonText(200, (await cancel(call.broker, call.principal, id, body.reason)).json);
    },
  }),
];
