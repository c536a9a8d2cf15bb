/**
 * The A2A column of the error table: the A2A error of each code or, where the protocol has none, the google.rpc status.
 * Null for codes that appear only in the `error` of a delegation.
 */
import type { ErrorCode } from "./errors.ts";

/** Errors of the A2A specification (section 5.4), by the names of its SDKs; the last is JSON-RPC's invalid params. */
export type A2aErrorName =
  | "TaskNotFoundError"
  | "TaskNotCancelableError"
  | "PushNotificationNotSupportedError"
  | "UnsupportedOperationError"
  | "ContentTypeNotSupportedError"
  | "VersionNotSupportedError"
  | "RequestMalformedError";

/** Names of google.rpc.Code. */
export type RpcStatus =
  | "INVALID_ARGUMENT"
  | "UNAUTHENTICATED"
  | "PERMISSION_DENIED"
  | "NOT_FOUND"
  | "RESOURCE_EXHAUSTED"
  | "INTERNAL"
  | "UNAVAILABLE"
  | "UNIMPLEMENTED";

export const A2A_ERRORS = {
  invalid_request: "RequestMalformedError",
  inexact_number: "RequestMalformedError",
  invalid_json: "INVALID_ARGUMENT",
  invalid_utf8: "INVALID_ARGUMENT",
  unauthenticated: "UNAUTHENTICATED",
  forbidden: "PERMISSION_DENIED",
  not_accepted: "PERMISSION_DENIED",
  priority_too_high: "PERMISSION_DENIED",
  agent_unknown: "TaskNotFoundError",
  delegation_not_found: "TaskNotFoundError",
  lease_unknown: "TaskNotFoundError",
  answer_unknown: "TaskNotFoundError",
  reply_unknown: "TaskNotFoundError",
  not_found: "NOT_FOUND",
  method_not_allowed: "UNIMPLEMENTED",
  lease_lost: "UnsupportedOperationError",
  already_finished: "UnsupportedOperationError",
  interrupt_not_open: "UnsupportedOperationError",
  agent_busy: "UnsupportedOperationError",
  wrong_state: "UnsupportedOperationError",
  precondition_failed: "UnsupportedOperationError",
  limit_reached: "UnsupportedOperationError",
  not_a_child: "UnsupportedOperationError",
  file_not_found: "RequestMalformedError",
  upload_not_found: "NOT_FOUND",
  upload_offset: "UnsupportedOperationError",
  hash_mismatch: "RequestMalformedError",
  files_off: "UnsupportedOperationError",
  storage_full: "RESOURCE_EXHAUSTED",
  storage_unavailable: "UNAVAILABLE",
  payload_too_large: "INVALID_ARGUMENT",
  range_not_satisfiable: "RequestMalformedError",
  unsupported_media_type: "ContentTypeNotSupportedError",
  unsupported_encoding: "ContentTypeNotSupportedError",
  idempotency_conflict: "RequestMalformedError",
  delegation_loop: "RequestMalformedError",
  approval_required: "RequestMalformedError",
  usage_shrinks: "RequestMalformedError",
  usage_currency: "RequestMalformedError",
  result_invalid: "RequestMalformedError",
  unknown_task_state: "RequestMalformedError",
  queue_full: "RESOURCE_EXHAUSTED",
  rate_limited: "RESOURCE_EXHAUSTED",
  budget_exhausted: "RESOURCE_EXHAUSTED",
  quota_exceeded: "RESOURCE_EXHAUSTED",
  internal: "INTERNAL",
  redis_unavailable: "UNAVAILABLE",
  overloaded: "UNAVAILABLE",
  shutting_down: "UNAVAILABLE",
  budget_exceeded: null,
  attempts_exhausted: null,
  worker_unavailable: null,
  deadline_exceeded: null,
  interrupt_expired: null,
  not_picked_up: null,
  agent_error: null,
  rejected: null,
  canceled: null,
} as const satisfies Record<ErrorCode, A2aErrorName | RpcStatus | null>;
