/**
 * Many delegations in one request, each accepted or refused on its own. Limit: the items run one after the other, so that
 * equal priorities keep their order. After 10 s, or once Redis does not answer, the remaining items are refused without
 * being executed.
 */
import { delegate } from "../../engine/delegations/delegate.ts";
import { bodyHash } from "../../engine/delegations/idempotency.ts";
import { batchInputSchema, batchRequestSchema, batchResultSchema } from "../../schema/batch.ts";
import { delegateRequestSchema } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { NOT_EXECUTED, toErrandError, toProblem } from "../http/problem.ts";
import { check, type Route, route } from "../http/route.ts";
import { jsonText } from "../http/text-response.ts";
import { traceparentOf } from "../http/trace.ts";

const BATCH_MS = 10_000;

interface Result {
  /** JSON text. */
  readonly text: string;
  readonly error?: ErrandError;
}

/** Delegates one item. The Idempotency-Key of the batch is combined with the item's index. */
async function delegateItem(
  request: AuthenticatedRequest,
  item: Record<string, unknown>,
  index: number,
): Promise<Result> {
  const { broker, principal, requestId } = request;
  try {
    const { idempotency_key, ...body } = item;
    const batchKey = request.idempotencyKey;
    const key =
      idempotency_key ?? (batchKey === undefined ? undefined : `batch:${bodyHash([batchKey, index])}`);
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
    return refusal(toErrandError(error, broker.log, requestId), requestId, broker.id);
  }
}

function refusal(error: ErrandError, requestId: string, brokerId: string): Result {
  const problem = toProblem(error, requestId, brokerId);
  const { retry_after_seconds } = error.context;
  // An item cannot have a Retry-After header.
  const details =
    retry_after_seconds === undefined ? {} : { details: { ...problem.details, retry_after_seconds } };
  return { text: JSON.stringify({ status: problem.status, error: { ...problem, ...details } }), error };
}

function notExecuted(code: "redis_unavailable" | "overloaded", why: string): ErrandError {
  return new ErrandError(code, `This item was not executed: ${why}.`, {
    retry_after_seconds: 1,
    details: { outcome: NOT_EXECUTED },
  });
}

export const batchRoutes: readonly Route[] = [
  route({
    id: "delegateMany",
    method: "POST",
    path: "/v1/delegations/batch",
    summary: "Delegate many tasks at once",
    description:
      "Delegates up to 100 items, in order. Each is accepted or refused on its own; the results are in the order of the items.",
    body: batchRequestSchema,
    responses: { 200: batchResultSchema },
    notes: { requestHeaders: ["Idempotency-Key", "traceparent"], describedBody: batchInputSchema },
    async handle(request, { body }) {
      const results: string[] = [];
      const until = performance.now() + BATCH_MS;
      let stop: ErrandError | null = null;
      for (const [index, item] of body.delegations.entries()) {
        const { text, error } = stop
          ? refusal(stop, request.requestId, request.broker.id)
          : await delegateItem(request, item, index);
        results.push(text);
        if (error?.code === "redis_unavailable") {
          stop ??= notExecuted(
            "redis_unavailable",
            "the broker's storage did not answer for an earlier item",
          );
        } else if (performance.now() > until) {
          stop ??= notExecuted("overloaded", `the batch took longer than ${BATCH_MS / 1000} s`);
        }
      }
      return jsonText(200, `{"results":[${results.join(",")}]}`);
    },
  }),
];
