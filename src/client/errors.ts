/**
 * What every refused or lost call throws. Limit: it carries what the broker said and nothing else; codes of
 * the client's own are `unreachable`, `connection_lost`, `no_answer`, `invalid_response`, `wait_ran_out`.
 */
import type { Category, Problem } from "../schema/errors.ts";

export interface LocalProblem {
  readonly code: string;
  readonly category: Category;
  readonly detail: string;
  readonly recovery: string;
  readonly status?: number;
  readonly retryable?: boolean;
  readonly details?: Record<string, unknown>;
}

/** `status` is 0 where no answer came; `retryAfterMs` is what the broker asked for in `Retry-After`. */
export class ErrandApiError extends Error {
  override readonly name = "ErrandApiError";
  readonly code: string;
  readonly category: Category;
  readonly status: number;
  readonly retryable: boolean;
  readonly recovery: string;
  readonly details: Record<string, unknown> | undefined;
  readonly requestId: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly problem: Problem;

  constructor(problem: Problem, extra: { cause?: unknown; retryAfterMs?: number | undefined } = {}) {
    super(problem.detail, extra.cause === undefined ? undefined : { cause: extra.cause });
    this.code = problem.code;
    this.category = problem.category;
    this.status = problem.status;
    this.retryable = problem.retryable;
    this.recovery = problem.recovery;
    this.details = problem.details;
    this.requestId = problem.request_id;
    this.retryAfterMs = extra.retryAfterMs;
    this.problem = problem;
  }
}

/** A problem that the client found itself, in the form that the broker would have used. */
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

/** The broker is away for now: the same call may well succeed later. */
export function isAway(error: ErrandApiError): boolean {
  if (error.status === 0) return error.category === "TRANSPORT";
  return error.status >= 502 && error.status <= 504;
}
