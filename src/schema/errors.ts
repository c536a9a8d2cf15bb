/**
 * The one error table: code → category, HTTP status, retryable, recovery. Every door, the CLI's exit
 * codes and the docs are derived from it. Limit: what A2A calls each stands in a2a-errors.ts.
 */
import * as z from "zod";

export const CATEGORIES = {
  CONFIG: { exit: 78, meaning: "bad configuration, unknown agent" },
  AUTH: { exit: 77, meaning: "missing, wrong or insufficient token" },
  PROTOCOL: { exit: 64, meaning: "malformed or illegal request" },
  UPSTREAM: { exit: 1, meaning: "the agent failed or refused, or the work is not there" },
  TRANSPORT: { exit: 75, meaning: "Redis away, overloaded, shutting down, queue full" },
  TIMEOUT: { exit: 124, meaning: "a wait or deadline ran out" },
  INTERNAL: { exit: 70, meaning: "a bug; quote the request id" },
} as const;

export const categorySchema = z.enum([
  "CONFIG",
  "AUTH",
  "PROTOCOL",
  "UPSTREAM",
  "TRANSPORT",
  "TIMEOUT",
  "INTERNAL",
]);
export type Category = z.infer<typeof categorySchema>;

interface ErrorRow {
  readonly category: Category;
  /** HTTP status; null for codes that only ever stand on a delegation. */
  readonly status: number | null;
  readonly title: string;
  readonly retryable: boolean;
  readonly recovery: string;
  /** The recovery in the words of the `errand` program, where they differ. */
  readonly cli?: string;
}

const row = (
  category: Category,
  status: number | null,
  title: string,
  recovery: string,
  retryable = false,
  cli?: string,
): ErrorRow => ({ category, status, title, retryable, recovery, ...(cli !== undefined && { cli }) });

export const ERRORS = {
  invalid_request: row(
    "PROTOCOL",
    400,
    "The request is not valid",
    "Correct the fields named in details.issues.",
    false,
    "Correct what is named, and try again.",
  ),
  invalid_json: row("PROTOCOL", 400, "The body is not valid JSON", "Send one well-formed JSON object."),
  invalid_utf8: row("PROTOCOL", 400, "The body is not valid UTF-8", "Encode the body as UTF-8."),
  unauthenticated: row(
    "AUTH",
    401,
    "No valid token",
    "Send 'Authorization: Bearer <token>' with a token that is neither revoked nor expired.",
    false,
    "Set ERRAND_TOKEN or --token to a token that is neither revoked nor expired ('errand token create' makes one).",
  ),
  forbidden: row(
    "AUTH",
    403,
    "This principal may not do that",
    "Use a token of a principal that is allowed to.",
    false,
    "Set ERRAND_TOKEN or --token to the token of a principal that is allowed to; 'errand doctor' says whose yours is.",
  ),
  not_accepted: row(
    "AUTH",
    403,
    "The agent does not accept work from you",
    "Ask the operator to add you to the agent's accepts_from.",
    false,
    "Ask the operator to let you in: 'errand agent put <agent> --accepts-from <principals...>'.",
  ),
  agent_unknown: row(
    "CONFIG",
    404,
    "No such agent",
    "Check the name with GET /v1/agents, or create it with PUT /v1/agents/{agent}.",
    false,
    "Check the name with 'errand agent list', or create it with 'errand agent put <agent>'.",
  ),
  delegation_not_found: row(
    "UPSTREAM",
    404,
    "No such delegation",
    "Check the id; finished delegations leave after the retention time.",
    false,
    "Check the id with 'errand list'; finished delegations leave after the retention time.",
  ),
  lease_unknown: row("UPSTREAM", 404, "No such lease", "Drop this work and ask for a new lease."),
  reply_unknown: row(
    "UPSTREAM",
    404,
    "The reply matches no delegation",
    "Send the delegation_id and lease_id that came with the request.",
  ),
  not_found: row(
    "PROTOCOL",
    404,
    "No such resource",
    "Check method and path against the documentation.",
    false,
    "Check the id, and that the URL is the broker's.",
  ),
  lease_lost: row(
    "PROTOCOL",
    409,
    "The lease is no longer yours",
    "Stop this work; details.reason says why. Nothing was changed.",
  ),
  already_finished: row(
    "PROTOCOL",
    409,
    "The delegation is finished",
    "Read it; its state will not change.",
    false,
    "See how it ended with 'errand get <id>'; its state will not change.",
  ),
  interrupt_not_open: row(
    "PROTOCOL",
    409,
    "That question is not open",
    "Read the delegation and answer its current interrupt.",
    false,
    "See what it asks now with 'errand get <id>'.",
  ),
  agent_busy: row(
    "PROTOCOL",
    409,
    "The agent has live delegations",
    "Wait for them, cancel them, or delete with ?force=true.",
    false,
    "Wait for them, cancel them ('errand list --target <agent>'), or delete with --force.",
  ),
  wrong_state: row(
    "PROTOCOL",
    409,
    "Not possible in this state",
    "Read the delegation and act on its state.",
    false,
    "See where it stands with 'errand get <id>'.",
  ),
  precondition_failed: row(
    "PROTOCOL",
    412,
    "The condition of If-Match or If-None-Match is not met",
    "Read the agent, check what changed, and try again with its current ETag.",
  ),
  limit_reached: row(
    "PROTOCOL",
    409,
    "A limit is reached",
    "Waiting does not help. details.limit names the limit; put the rest into the reply, or delegate it separately.",
    false,
    "Waiting does not help: put the rest into the reply, or delegate it separately.",
  ),
  payload_too_large: row(
    "PROTOCOL",
    413,
    "The body is too large",
    "Send less, or put the content behind a URL part.",
    false,
    "Send less, or put the content behind a URL part (--message-file).",
  ),
  unsupported_media_type: row(
    "PROTOCOL",
    415,
    "Only JSON is understood",
    "Send 'Content-Type: application/json'.",
  ),
  idempotency_conflict: row(
    "PROTOCOL",
    422,
    "This Idempotency-Key was used with another body",
    "Use a new key for new work.",
    false,
    "Give another --idempotency-key for other work, or none.",
  ),
  delegation_loop: row(
    "PROTOCOL",
    422,
    "The delegation would loop",
    "Do the work in this agent, or delegate to one that is not an ancestor.",
  ),
  unknown_task_state: row(
    "PROTOCOL",
    422,
    "Unknown task state",
    "Send one of the task states of the A2A specification.",
  ),
  queue_full: row(
    "TRANSPORT",
    429,
    "The agent's queue is full",
    "Retry after the time in Retry-After.",
    true,
    "Try again later, or start more workers with 'errand work --agent <agent>'.",
  ),
  rate_limited: row(
    "TRANSPORT",
    429,
    "Too many requests",
    "Retry after the time in Retry-After.",
    true,
    "Try again in a while.",
  ),
  quota_exceeded: row(
    "TRANSPORT",
    429,
    "A quota is used up",
    "Close streams or polls, or retry after the time in Retry-After.",
    true,
    "End some waits and watches, or try again in a while.",
  ),
  internal: row(
    "INTERNAL",
    500,
    "Internal error",
    "Report it with the request id; the outcome may be unknown.",
  ),
  redis_unavailable: row(
    "TRANSPORT",
    503,
    "The broker's storage is away",
    "Retry after the time in Retry-After, with the same Idempotency-Key.",
    true,
    "Try again in a while; 'errand doctor' looks at the broker's Redis.",
  ),
  overloaded: row(
    "TRANSPORT",
    503,
    "The broker is short of memory or time",
    "Retry after the time in Retry-After.",
    true,
    "Try again in a while; 'errand doctor' shows what memory is left.",
  ),
  shutting_down: row(
    "TRANSPORT",
    503,
    "The broker is shutting down",
    "Retry after the time in Retry-After.",
    true,
    "Try again in a moment.",
  ),
  attempts_exhausted: row(
    "UPSTREAM",
    null,
    "Every attempt was lost",
    "Look at the agent's workers, then redrive the delegation.",
    false,
    "Look at the agent's workers, then 'errand redrive <id>'.",
  ),
  deadline_exceeded: row(
    "TIMEOUT",
    null,
    "The deadline passed",
    "Delegate again with a later deadline if the work is still wanted.",
    false,
    "Delegate again with a longer --ttl if the work is still wanted.",
  ),
  interrupt_expired: row(
    "TIMEOUT",
    null,
    "Nobody answered in time",
    "Delegate again and answer sooner.",
    false,
    "Delegate it anew with 'errand redrive <id>', and answer sooner.",
  ),
  not_picked_up: row(
    "TIMEOUT",
    null,
    "No worker took it in time",
    "Start a worker for the agent, then delegate again.",
    false,
    "Start a worker with 'errand work --agent <agent>', then 'errand redrive <id>'.",
  ),
  agent_error: row(
    "UPSTREAM",
    null,
    "The agent failed",
    "Read error.message; it is the agent's own.",
    false,
    "That is the agent's own message; 'errand get <id>' shows the rest.",
  ),
  rejected: row(
    "UPSTREAM",
    null,
    "The agent refused the work",
    "Change the work or delegate to another agent.",
  ),
  canceled: row("UPSTREAM", null, "The delegation was canceled", "Delegate again if it is still wanted."),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** Body of every error answer, `application/problem+json` (RFC 9457). */
export const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
  category: categorySchema,
  retryable: z.boolean(),
  recovery: z.string(),
  details: z.record(z.string(), z.unknown()).optional(),
  request_id: z.string().optional(),
  delegation_id: z.string().optional(),
  delegation_valid: z.boolean().optional(),
});
export type Problem = z.infer<typeof problemSchema>;

export interface ErrorContext {
  readonly details?: Record<string, unknown>;
  readonly delegation_id?: string;
  /** True while the delegation is not finished. */
  readonly delegation_valid?: boolean;
  readonly retry_after_seconds?: number;
  /** Instead of the code's own, where that would not help. */
  readonly recovery?: string;
  readonly cause?: unknown;
}

/** An expected refusal: `code` is a key of {@link ERRORS}; `message` says what failed and is safe to show. */
export class ErrandError extends Error {
  override readonly name = "ErrandError";
  readonly code: ErrorCode;
  readonly context: ErrorContext;

  constructor(code: ErrorCode, message: string, context: ErrorContext = {}) {
    super(message, context.cause === undefined ? undefined : { cause: context.cause });
    this.code = code;
    this.context = context;
  }
}

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

/** Renders an error for the wire; codes without a status of their own never reach here and count as 500. */
export function toProblem(error: ErrandError, requestId: string): Problem {
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
    ...(delegation_id !== undefined && { delegation_id }),
    ...(delegation_valid !== undefined && { delegation_valid }),
  };
}
