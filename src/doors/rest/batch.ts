/**
 * Many delegations in one request, each accepted or refused on its own. Limit: one after the other, so that equal
 * priorities keep their order. If Redis does not answer, or after 10 s, the rest is refused without a try.
 */
import { z } from "zod";
import { delegate } from "../../engine/delegations/delegate.ts";
import { bodyHash } from "../../engine/delegations/idempotency.ts";
import { batchRequestSchema, delegateRequestSchema, delegationSchema } from "../../schema/delegation.ts";
import { ErrandError, problemSchema, toProblem } from "../../schema/errors.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { NOT_EXECUTED, toErrandError } from "../http/problem.ts";
import { check, type Route, route } from "../http/route.ts";
import { jsonText } from "../http/text-response.ts";
import { traceparentOf } from "../http/trace.ts";

const resultSchema = z.union([
  z.strictObject({ status: z.int(), delegation: delegationSchema }),
  z.strictObject({ status: z.int(), error: problemSchema }),
]);

const BATCH_MS = 10_000;

interface Result {
  /** JSON text. */
  readonly text: string;
  readonly error?: ErrandError;
}

/** Delegates one item. A key for the whole batch is combined with the place of the item. */
async function one(
  request: AuthenticatedRequest,
  item: Record<string, unknown>,
  place: number,
): Promise<Result> {
  const { broker, principal, requestId } = request;
  try {
    const { idempotency_key, ...body } = item;
    const whole = request.header("idempotency-key");
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
      { idempotencyKey: key, body, traceparent: traceparentOf(request.header("traceparent")) },
    );
    return { text: `{"status":${replayed ? 200 : 202},"delegation":${record.json}}` };
  } catch (error) {
    return refusal(toErrandError(error, broker.log, requestId), requestId);
  }
}

function refusal(error: ErrandError, requestId: string): Result {
  const problem = toProblem(error, requestId);
  const { retry_after_seconds } = error.context;
  // An item cannot have a Retry-After header.
  const details =
    retry_after_seconds === undefined ? {} : { details: { ...problem.details, retry_after_seconds } };
  return { text: JSON.stringify({ status: problem.status, error: { ...problem, ...details } }), error };
}

function untried(code: "redis_unavailable" | "overloaded", why: string): ErrandError {
  return new ErrandError(code, `Not tried: ${why}.`, {
    retry_after_seconds: 1,
    details: { outcome: NOT_EXECUTED },
  });
}

export const batchRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/delegations/batch",
    summary: "Delegate up to 100 items in order; each is accepted or refused on its own.",
    body: batchRequestSchema,
    responses: { 200: z.strictObject({ results: z.array(resultSchema) }) },
    notes: { takes: ["Idempotency-Key", "traceparent"] },
    async handle(request, { body }) {
      const results: string[] = [];
      const until = performance.now() + BATCH_MS;
      let stop: ErrandError | null = null;
      for (const [place, item] of body.delegations.entries()) {
        const { text, error } = stop ? refusal(stop, request.requestId) : await one(request, item, place);
        results.push(text);
        if (error?.code === "redis_unavailable") {
          stop ??= untried(
            "redis_unavailable",
            "the broker's storage did not answer for an earlier delegation",
          );
        } else if (performance.now() > until) {
          stop ??= untried("overloaded", `the batch took longer than ${BATCH_MS / 1000} s`);
        }
      }
      return jsonText(200, `{"results":[${results.join(",")}]}`);
    },
  }),
];
