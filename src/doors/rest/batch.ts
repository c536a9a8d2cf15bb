/**
 * Many delegations in one request, each accepted or refused on its own. Limit: one after the other, so that equal
 * priorities keep their order; the whole is bounded by the size of a body.
 */
import { z } from "zod";
import { delegate } from "../../engine/delegate.ts";
import { bodyHash } from "../../engine/idempotency.ts";
import { batchRequestSchema, delegateRequestSchema, delegationSchema } from "../../schema/delegation.ts";
import { ErrandError, problemSchema, toProblem } from "../../schema/errors.ts";
import { jsonText } from "../answer.ts";
import type { Call } from "../call.ts";
import { toErrandError } from "../problem.ts";
import { check, type Route, route } from "../route.ts";
import { traceparentOf } from "../trace.ts";

const resultSchema = z.union([
  z.strictObject({ status: z.int(), delegation: delegationSchema }),
  z.strictObject({ status: z.int(), error: problemSchema }),
]);

/** The text of one result. A key for the whole batch stands for each by its place. */
async function one(call: Call, item: Record<string, unknown>, place: number): Promise<string> {
  const { broker, principal, requestId } = call;
  try {
    const { idempotency_key, ...body } = item;
    const whole = call.header("idempotency-key");
    const key = idempotency_key ?? (whole === undefined ? undefined : `batch:${bodyHash([whole, place])}`);
    if (key !== undefined && typeof key !== "string") {
      throw new ErrandError("invalid_request", "idempotency_key: must be a string", {
        details: { issues: [{ path: "idempotency_key", reason: "must be a string" }] },
      });
    }
    const { record, replayed } = await delegate(
      broker,
      principal,
      check(delegateRequestSchema, body, "body"),
      { idempotencyKey: key, body, traceparent: traceparentOf(call.header("traceparent")) },
    );
    return `{"status":${replayed ? 200 : 202},"delegation":${record.json}}`;
  } catch (error) {
    const refused = toErrandError(error, broker.log, requestId);
    const problem = toProblem(refused, requestId);
    const { retry_after_seconds } = refused.context;
    // There is no header for one of many.
    const details =
      retry_after_seconds === undefined ? {} : { details: { ...problem.details, retry_after_seconds } };
    return JSON.stringify({ status: problem.status, error: { ...problem, ...details } });
  }
}

export const batchRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/delegations/batch",
    summary: "Delegate up to 100 at once; each is accepted or refused on its own, in order.",
    body: batchRequestSchema,
    answers: { 200: z.strictObject({ results: z.array(resultSchema) }) },
    notes: { takes: ["Idempotency-Key", "traceparent"] },
    async handle(call, { body }) {
      const results: string[] = [];
      for (const [place, item] of body.delegations.entries()) results.push(await one(call, item, place));
      return jsonText(200, `{"results":[${results.join(",")}]}`);
    },
  }),
];
