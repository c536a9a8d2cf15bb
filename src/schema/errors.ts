/**
 * The error table: code → category, HTTP status, retryable, recovery; and the error that has one of its codes. Every API,
 * the CLI's exit codes and the docs are derived from the table; a2a-errors.ts has the names of A2A. The file is long
 * because the table is one list.
 */
import * as z from "zod";

export const CATEGORIES = {
  CONFIG: { exit: 78, meaning: "bad configuration or unknown agent" },
  AUTH: { exit: 77, meaning: "missing, invalid or insufficient token" },
  PROTOCOL: { exit: 64, meaning: "malformed or illegal request" },
  UPSTREAM: { exit: 1, meaning: "the agent failed or refused, or the work does not exist" },
  TRANSPORT: { exit: 75, meaning: "Redis unavailable, overload, shutdown, full queue" },
  TIMEOUT: { exit: 124, meaning: "a wait or deadline expired" },
  INTERNAL: { exit: 70, meaning: "a bug; report the request id" },
} as const;

/** The group of an error code. */
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
  /** HTTP status; null for codes that appear only in the `error` of a delegation. */
  readonly status: number | null;
  readonly title: string;
  readonly retryable: boolean;
  readonly recovery: string;
  /** The recovery as the CLI prints it, if it differs. */
  readonly cli?: string;
}

/** Marked for bundlers, which then drop the table from a page that does not use it. */
// @__NO_SIDE_EFFECTS__
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
    "The request is invalid",
    "Correct the fields named in details.issues.",
    false,
    "Correct the named fields and try again.",
  ),
  invalid_json: row("PROTOCOL", 400, "The body is not valid JSON", "Send one well-formed JSON object."),
  inexact_number: row(
    "PROTOCOL",
    400,
    "A number would lose digits",
    "Send the numbers named in details.issues as texts, in quotes.",
    false,
    "Write the number as a text, in quotes.",
  ),
  invalid_utf8: row("PROTOCOL", 400, "The body is not valid UTF-8", "Encode the body as UTF-8."),
  unauthenticated: row(
    "AUTH",
    401,
    "The token is missing or invalid",
    "Send 'Authorization: Bearer <token>' with a token that is neither revoked nor expired.",
    false,
    "Set ERRAND_TOKEN or --token to a token that is neither revoked nor expired; the broker's operator creates one with 'errand invite <name>'.",
  ),
  forbidden: row(
    "AUTH",
    403,
    "The principal lacks the permission",
    "Use the token of a principal that has the permission.",
    false,
    "Set ERRAND_TOKEN or --token to the token of a principal that has the permission; 'errand doctor' shows whose token you use.",
  ),
  not_accepted: row(
    "AUTH",
    403,
    "The agent does not accept work from you",
    "Ask the operator to add you to the agent's accepts_from.",
    false,
    "Ask the operator to add you: 'errand agent put <agent> --accepts-from <principals...>'.",
  ),
  agent_unknown: row(
    "CONFIG",
    404,
    "The agent does not exist",
    "Check the name with GET /v1/agents, or create it with PUT /v1/agents/{agent}.",
    false,
    "Check the name with 'errand agent list', or create it with 'errand agent put <agent>'.",
  ),
  delegation_not_found: row(
    "UPSTREAM",
    404,
    "The delegation does not exist",
    "Check the id. Finished delegations are deleted after the retention time.",
    false,
    "Check the id with 'errand list'. Finished delegations are deleted after the retention time.",
  ),
  lease_unknown: row("UPSTREAM", 404, "The lease does not exist", "Stop this work and request a new lease."),
  reply_unknown: row(
    "UPSTREAM",
    404,
    "The reply matches no delegation",
    "Send the delegation_id and lease_id of the request.",
  ),
  not_found: row(
    "PROTOCOL",
    404,
    "The resource does not exist",
    "Check the method and the path against the API description: /docs for people, /openapi.json for tools.",
    false,
    "Check the id and the broker's URL.",
  ),
  method_not_allowed: row(
    "PROTOCOL",
    405,
    "The path does not have this method",
    "Use one of the methods that the Allow header names.",
    false,
    "Check the broker's URL.",
  ),
  lease_lost: row(
    "PROTOCOL",
    409,
    "The lease is no longer yours",
    "Stop this work. details.reason says why the lease ended; the request changed nothing.",
  ),
  already_finished: row(
    "PROTOCOL",
    409,
    "The delegation is finished",
    "Read the delegation; its state is final.",
    false,
    "See the result with 'errand get <id>'; its state is final.",
  ),
  interrupt_not_open: row(
    "PROTOCOL",
    409,
    "The question is not open",
    "Read the delegation and answer its current interrupt.",
    false,
    "See the open question with 'errand get <id>'.",
  ),
  answer_unknown: row(
    "PROTOCOL",
    404,
    "The request has no answer",
    "Ask the question, and take the answer once it is there; the ids are those of the question.",
  ),
  agent_busy: row(
    "PROTOCOL",
    409,
    "The agent has live delegations, or is being changed",
    "If it is to be deleted: wait until its delegations finish, cancel them, or delete it with ?force=true. Otherwise it is being changed or deleted: send the request again.",
    false,
    "If it is to be deleted: wait until its delegations finish, cancel them ('errand list --target <agent>' shows them), or pass --force. Otherwise try again.",
  ),
  wrong_state: row(
    "PROTOCOL",
    409,
    "The delegation's state does not allow this",
    "Read the delegation and act on its state.",
    false,
    "Check the state with 'errand get <id>'.",
  ),
  precondition_failed: row(
    "PROTOCOL",
    412,
    "The condition of If-Match or If-None-Match failed",
    "Read the agent, check what changed, and retry with its current ETag.",
  ),
  not_a_child: row(
    "PROTOCOL",
    422,
    "A delegation can wait for its own children only",
    "Name delegations whose parent_id is this delegation; details.children has those that are not.",
    false,
    "Name delegations whose parent is this one.",
  ),
  limit_reached: row(
    "PROTOCOL",
    409,
    "A limit is reached",
    "Do not retry; details.limit names the limit. Put the rest of the output into the reply, or delegate the rest of the work.",
    false,
    "Do not retry. Put the rest of the output into the reply, or delegate the rest of the work.",
  ),
  file_not_found: row(
    "UPSTREAM",
    404,
    "The file does not exist",
    "Upload the file with POST /v1/files and use the url of the answer. A file that no delegation names is deleted after a day.",
    false,
    "Check the id. A file is deleted with the last delegation that names it, or a day after its upload if none does.",
  ),
  upload_not_found: row(
    "UPSTREAM",
    404,
    "The upload does not exist",
    "Begin a new upload. One that is not continued for a day is deleted.",
  ),
  upload_offset: row(
    "PROTOCOL",
    409,
    "The bytes do not begin where the upload ends",
    "Continue at details.offset.",
  ),
  hash_mismatch: row(
    "PROTOCOL",
    422,
    "The content does not have its hash",
    "Compare the SHA-256 of the file with details.sha256, and upload the file again.",
  ),
  files_off: row(
    "CONFIG",
    501,
    "This broker stores no files",
    "Send small files as raw parts, or ask the operator to set ERRAND_FILES.",
  ),
  storage_full: row(
    "TRANSPORT",
    507,
    "The storage for files is full",
    "Try again later, or ask the operator for more space.",
    true,
  ),
  storage_unavailable: row(
    "TRANSPORT",
    503,
    "The storage for files is unavailable",
    "Wait as many seconds as the Retry-After header says, then ask for the offset of the upload, or repeat the request.",
    true,
  ),
  payload_too_large: row(
    "PROTOCOL",
    413,
    "The body is too large",
    "Send less, or refer to large content by a URL part.",
    false,
    "Send less, or refer to large content by a URL part (--message-file).",
  ),
  range_not_satisfiable: row(
    "PROTOCOL",
    416,
    "The range begins beyond the end",
    "Ask for a range below details.size.",
  ),
  unsupported_media_type: row(
    "PROTOCOL",
    415,
    "The body must be JSON",
    "Send 'Content-Type: application/json'.",
  ),
  unsupported_encoding: row(
    "PROTOCOL",
    415,
    "The body is compressed",
    "Send the body without Content-Encoding.",
    false,
    "Send the request to the broker without a proxy that compresses bodies.",
  ),
  idempotency_conflict: row(
    "PROTOCOL",
    422,
    "The Idempotency-Key was used with a different body",
    "Use a new key for new work.",
    false,
    "Use another --idempotency-key for new work, or none.",
  ),
  delegation_loop: row(
    "PROTOCOL",
    422,
    "The delegation would loop",
    "Do the work in this agent, or delegate to one that is not an ancestor.",
  ),
  priority_too_high: row(
    "AUTH",
    403,
    "The token may not delegate with this priority",
    "Delegate with a priority of at most details.max_priority.",
  ),
  approval_required: row(
    "PROTOCOL",
    422,
    "The agent refuses approval in advance",
    "Delegate without auto_approve, and answer the agent's questions when it asks.",
    false,
    "Delegate without --auto-approve; 'errand approve' answers the agent's questions.",
  ),
  usage_shrinks: row(
    "PROTOCOL",
    422,
    "The usage is less than the lease reported before",
    "Send what the whole lease has used so far, or repeat the request without usage.",
  ),
  usage_currency: row(
    "PROTOCOL",
    422,
    "The cost is in another currency than before",
    "Send the cost in the currency that details.currency names, or repeat the request without usage.",
  ),
  result_invalid: row(
    "PROTOCOL",
    422,
    "The result does not fit the delegation's result_schema",
    "Reply with exactly one data part that fits the delegation's result_schema; details.issues says what does not. If you cannot, fail the delegation.",
    false,
    "The agent's result does not fit the result schema. Change the task or the schema, and delegate again.",
  ),
  unknown_task_state: row(
    "PROTOCOL",
    422,
    "The task state is unknown",
    "Send a task state of the A2A specification.",
  ),
  queue_full: row(
    "TRANSPORT",
    429,
    "The agent's queue is full",
    "Wait as many seconds as the Retry-After header says, then retry.",
    true,
    "Try again later, or start more workers with 'errand work --agent <agent>'.",
  ),
  rate_limited: row(
    "TRANSPORT",
    429,
    "Too many requests",
    "Wait as many seconds as the Retry-After header says, then retry.",
    true,
    "Try again later.",
  ),
  budget_exhausted: row(
    "TRANSPORT",
    429,
    "A budget for this day or month is used up",
    "Delegate again once details.resets_at has passed, or ask the operator for a larger budget.",
    true,
  ),
  quota_exceeded: row(
    "TRANSPORT",
    429,
    "A quota is used up",
    "Close streams or polls, or wait as many seconds as the Retry-After header says, then retry.",
    true,
    "Stop some commands that wait or watch, or try again later.",
  ),
  internal: row(
    "INTERNAL",
    500,
    "Internal error",
    "Report it with the request id. The request may have taken effect.",
  ),
  redis_unavailable: row(
    "TRANSPORT",
    503,
    "The broker's storage is unavailable",
    "Wait as many seconds as the Retry-After header says, then retry with the same Idempotency-Key.",
    true,
    "Try again later; 'errand doctor' checks the broker's Redis.",
  ),
  overloaded: row(
    "TRANSPORT",
    503,
    "The broker is overloaded",
    "Wait as many seconds as the Retry-After header says, then retry.",
    true,
    "Try again later; 'errand doctor' shows the free memory.",
  ),
  shutting_down: row(
    "TRANSPORT",
    503,
    "The broker is shutting down",
    "Wait as many seconds as the Retry-After header says, then retry.",
    true,
    "Try again in a moment.",
  ),
  budget_exceeded: row(
    "UPSTREAM",
    null,
    "The delegation and everything under it used more than its budget",
    "See its budget for what was used. Delegate again with a larger budget, or smaller work.",
  ),
  attempts_exhausted: row(
    "UPSTREAM",
    null,
    "No attempt produced a result",
    "Check the agent's workers, then redrive the delegation.",
    false,
    "Check the agent's workers, then run 'errand redrive <id>'.",
  ),
  worker_unavailable: row(
    "UPSTREAM",
    null,
    "Its workers returned it too often, because they could not work",
    "Read the reasons in the delegation's events, fix the agent's workers, then redrive the delegation.",
    false,
    "'errand logs <id>' has the reasons. Fix the agent's workers, then run 'errand redrive <id>'.",
  ),
  deadline_exceeded: row(
    "TIMEOUT",
    null,
    "The deadline passed",
    "Delegate again with a later deadline if the work is still needed.",
    false,
    "Delegate again with a longer --ttl if the work is still needed.",
  ),
  interrupt_expired: row(
    "TIMEOUT",
    null,
    "The question was not answered in time",
    "Delegate again and answer sooner.",
    false,
    "Run 'errand redrive <id>', and answer sooner.",
  ),
  not_picked_up: row(
    "TIMEOUT",
    null,
    "No worker took the work in time",
    "Start a worker for the agent, then delegate again.",
    false,
    "Start a worker with 'errand work --agent <agent>', then run 'errand redrive <id>'.",
  ),
  agent_error: row(
    "UPSTREAM",
    null,
    "The agent failed",
    "Read error.message, which the agent wrote.",
    false,
    "The message came from the worker; 'errand get <id>' shows the rest.",
  ),
  rejected: row(
    "UPSTREAM",
    null,
    "The agent refused the work",
    "Change the work or delegate to another agent.",
  ),
  canceled: row(
    "UPSTREAM",
    null,
    "The delegation was canceled",
    "Delegate again if the work is still needed.",
  ),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

export interface ErrorContext {
  readonly details?: Record<string, unknown>;
  readonly delegation_id?: string;
  /** True while the delegation is not finished. */
  readonly delegation_valid?: boolean;
  readonly retry_after_seconds?: number;
  /** The methods of the Allow header. */
  readonly allow?: readonly string[];
  /** Replaces the code's recovery where that would not help. */
  readonly recovery?: string;
  readonly cause?: unknown;
}

/** What the recovery of a code names, so that every error with it has it in its details. */
export const NAMED_DETAILS = {
  invalid_request: "issues",
  inexact_number: "issues",
  lease_lost: "reason",
  limit_reached: "limit",
  not_a_child: "children",
  upload_offset: "offset",
  hash_mismatch: "sha256",
  range_not_satisfiable: "size",
  usage_currency: "currency",
  budget_exhausted: "resets_at",
  result_invalid: "issues",
  priority_too_high: "max_priority",
} as const satisfies Partial<Record<ErrorCode, string>>;
type Naming = keyof typeof NAMED_DETAILS;

export const isNaming = (code: ErrorCode): code is Naming => code in NAMED_DETAILS;

/** Codes that the error of a delegation may have: it has no details. */
export type StoredErrorCode = Exclude<ErrorCode, Naming>;

/** With the details that the recovery names, or with another recovery. */
type ContextOf<Code extends Naming> =
  | (ErrorContext & { readonly details: Readonly<Record<(typeof NAMED_DETAILS)[Code], unknown>> })
  | (ErrorContext & { readonly recovery: string });

type Given =
  | [code: StoredErrorCode, message: string, context?: ErrorContext]
  | { [Code in Naming]: [code: Code, message: string, context: ContextOf<Code>] }[Naming]
  // With the code of another error, whose details `context` keeps.
  | [like: ErrandError, message: string, context: ErrorContext];

/** An expected error: `code` is a key of {@link ERRORS}; `message` says what failed and is safe to show. */
export class ErrandError extends Error {
  override readonly name = "ErrandError";
  readonly code: ErrorCode;
  readonly context: ErrorContext;

  constructor(...[code, message, context = {}]: Given) {
    super(message, context.cause === undefined ? undefined : { cause: context.cause });
    this.code = typeof code === "string" ? code : code.code;
    this.context = context;
  }
}

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}
