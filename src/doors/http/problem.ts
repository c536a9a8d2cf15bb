/**
 * Errors on the wire: problem+json from the error table. Limit: an unexpected error becomes `internal` with a request id;
 * its cause is only in the log.
 */
import { classify, isNotReplicated } from "../../redis/errors.ts";
import { ERRORS, ErrandError } from "../../schema/errors.ts";
import type { Problem } from "../../schema/problem.ts";
import type { Log } from "../../telemetry/log.ts";
import { jsonText, type TextResponse } from "./text-response.ts";

const RETRY_AFTER_SECONDS = 1;
/** `details.outcome` of a request that has no effect now or later. */
export const NOT_EXECUTED = "not_executed";

export const shuttingDown = (): ErrandError =>
  new ErrandError("shutting_down", "This gateway is shutting down.", { retry_after_seconds: 1 });

/** Headers that an error has in every API. */
export const errorHeaders = ({ code, context }: ErrandError): Readonly<Record<string, string>> => ({
  ...(context.allow && { allow: context.allow.join(", ") }),
  ...(code === "range_not_satisfiable" && { "content-range": `bytes */${context.details?.size}` }),
  ...(ERRORS[code].status === 401 && { "www-authenticate": 'Bearer realm="errand"' }),
  // Tells the refusal of an encoding from that of a media type (RFC 9110, 15.5.16).
  ...(code === "unsupported_encoding" && { "accept-encoding": "identity" }),
});

/**
 * Returns an expected error as it is, translates an error of Redis, and turns any other into `internal`. A read (by
 * `method`) changes nothing, so it gets no `details.outcome`.
 */
export function toErrandError(error: unknown, log: Log, requestId: string, method = "POST"): ErrandError {
  if (error instanceof ErrandError && error.code !== "internal") return error;
  const trouble = classify(error);
  const reads = method === "GET" || method === "HEAD";
  if (trouble?.code === "redis_unavailable") {
    const refused = trouble.executed === "no";
    const message = refused
      ? "The broker's storage refuses requests; nothing was written."
      : isNotReplicated(error)
        ? "The broker's storage has accepted the request, but too few replicas confirmed it in time."
        : "The broker's storage did not answer in time.";
    return new ErrandError("redis_unavailable", message, {
      ...(reads
        ? { recovery: ERRORS.overloaded.recovery }
        : { details: { outcome: refused ? NOT_EXECUTED : "unknown" } }),
      retry_after_seconds: RETRY_AFTER_SECONDS,
    });
  }
  if (trouble?.code === "overloaded") {
    return new ErrandError("overloaded", "The broker's storage is full; nothing was written.", {
      ...(!reads && { details: { outcome: NOT_EXECUTED } }),
      retry_after_seconds: 5,
    });
  }
  const stack = error instanceof Error ? error.stack : String(error);
  log.error({ request_id: requestId, err: stack }, "internal error");
  return new ErrandError("internal", "The broker failed unexpectedly.");
}

/** Renders an error for the wire; a code without a status, which should not get here, as 500. */
export function toProblem(error: ErrandError, requestId: string, brokerId: string): Problem {
  const { category, status, title, retryable } = ERRORS[error.code];
  const { details, delegation_id, delegation_valid, recovery = ERRORS[error.code].recovery } = error.context;
  return {
    type: `urn:errand:error:${error.code}`,
    title,
    status: status ?? 500,
    detail: error.message,
    code: error.code,
    category,
    retryable,
    recovery,
    ...(details && { details }),
    request_id: requestId,
    broker_id: brokerId,
    ...(delegation_id !== undefined && { delegation_id }),
    ...(delegation_valid !== undefined && { delegation_valid }),
  };
}

export function problemText(error: ErrandError, requestId: string, brokerId: string): TextResponse {
  const problem = toProblem(error, requestId, brokerId);
  const retryAfter =
    error.context.retry_after_seconds ?? (problem.retryable ? RETRY_AFTER_SECONDS : undefined);
  return jsonText(problem.status, JSON.stringify(problem), {
    "content-type": "application/problem+json",
    ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
    ...errorHeaders(error),
  });
}

export function problemResponse(error: ErrandError, requestId: string, brokerId: string): Response {
  const { text, status, headers } = problemText(error, requestId, brokerId);
  return new Response(text, { status, headers });
}
