/** The error that every failed call throws. */
import type { Category } from "../schema/errors.ts";
import type { Problem } from "../schema/problem.ts";

export interface LocalProblem {
  readonly code: string;
  readonly category: Category;
  readonly detail: string;
  readonly recovery: string;
  readonly status?: number;
  readonly retryable?: boolean;
  readonly details?: Record<string, unknown>;
}

/** Thrown by every failed call. Its `message` says what failed and, where that is simple, what to change in code. */
export class ErrandApiError extends Error {
  override readonly name = "ErrandApiError";
  /**
   * Stable snake_case: one of the broker's codes (docs/errors.md), or one of the library's own: `invalid_url`,
   * `not_a_broker`, `unreachable`, `connection_lost`, `no_answer`, `invalid_response`, `wait_ran_out`, `invalid_token`, `invalid_proxy`,
   * `proxy_auth_required`, `proxy_refused`, `proxy_not_supported`.
   */
  readonly code: string;
  readonly category: Category;
  /** The HTTP status of the broker's answer; 0 when it gave none. */
  readonly status: number;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** What to do next. */
  readonly recovery: string;
  /**
   * For example `issues` (each with `path` and `reason`), or `outcome`: `"unknown"` if the call may have taken effect,
   * `"not_executed"` if it did not.
   */
  readonly details: Record<string, unknown> | undefined;
  /** Identifies the request for the broker's operator. */
  readonly requestId: string | undefined;
  /** `Retry-After` in milliseconds. */
  readonly retryAfterMs: number | undefined;
  readonly #problem: Problem;

  constructor(
    problem: Problem,
    extra: { cause?: unknown; retryAfterMs?: number | undefined; hint?: string | undefined } = {},
  ) {
    const message = extra.hint === undefined ? problem.detail : `${problem.detail} ${extra.hint}`;
    super(message, extra.cause === undefined ? undefined : { cause: extra.cause });
    this.code = problem.code;
    this.category = problem.category;
    this.status = problem.status;
    this.retryable = problem.retryable;
    this.recovery = problem.recovery;
    this.details = problem.details;
    this.requestId = problem.request_id;
    this.retryAfterMs = extra.retryAfterMs;
    this.#problem = problem;
  }

  /** The whole problem document (RFC 9457). */
  get problem(): Problem {
    return this.#problem;
  }

  /** The problem document, because an error's message is not in its JSON otherwise. */
  toJSON(): Problem {
    return this.#problem;
  }
}

/** An error of the client itself, in the form of the broker's errors. */
export function localError(local: LocalProblem, cause?: unknown): ErrandApiError {
  const { code, category, detail, recovery, status = 0, retryable = false, details } = local;
  return new ErrandApiError(
    {
      type: `urn:errand:error:${code}`,
      title: detail,
      status,
      detail,
      code,
      category,
      retryable,
      recovery,
      ...(details && { details }),
    },
    { cause },
  );
}

/** True if the broker is unavailable, so that the same call may succeed later. */
export function isUnavailable(error: ErrandApiError): boolean {
  if (error.status === 0) return error.category === "TRANSPORT";
  return error.status >= 502 && error.status <= 504;
}

/** True if the delegation has reached a limit for good, unlike a 429 for too many calls. */
export function isFull(error: unknown): boolean {
  return error instanceof ErrandApiError && error.code === "limit_reached";
}

/** True if the request itself is wrong: malformed, too large, or not allowed by the schema. */
export function isInvalid(error: unknown): error is ErrandApiError {
  return error instanceof ErrandApiError && [400, 413, 422].includes(error.status);
}
