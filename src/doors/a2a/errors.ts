/**
 * Errors in the form of each A2A binding, from the broker's error table or the SDK's errors. Any other error is
 * `internal`, and reveals nothing.
 */
import {
  A2A_ERROR_CODE,
  A2AError,
  ContentTypeNotSupportedError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  restStatusFor,
  TaskNotCancelableError,
  TaskNotFoundError,
  toJsonRpcError,
  toRestErrorBody,
  UnsupportedOperationError,
  VersionNotSupportedError,
} from "@a2a-js/sdk/errors";
import { A2A_ERRORS, type A2aErrorName, type RpcStatus } from "../../schema/a2a-errors.ts";
import { ERRORS, type ErrandError, type ErrorCode, isNaming, NAMED_DETAILS } from "../../schema/errors.ts";
import type { Log } from "../../telemetry/log.ts";
import { errorHeaders, toErrandError } from "../http/problem.ts";

type Detail = Record<string, unknown>;

export interface Failure {
  readonly http: number;
  readonly code: number;
  readonly status: string;
  readonly message: string;
  /** Objects with an `@type`; the first is an ErrorInfo. */
  readonly details: readonly Detail[];
  readonly headers: Readonly<Record<string, string>>;
}

const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest";
/** JSON-RPC leaves -32000 to servers; A2A uses the codes below it. */
const SERVER_ERROR = -32_000;

const SDK_ERRORS = {
  TaskNotFoundError,
  TaskNotCancelableError,
  PushNotificationNotSupportedError,
  UnsupportedOperationError,
  ContentTypeNotSupportedError,
  VersionNotSupportedError,
  RequestMalformedError,
} as const satisfies Record<A2aErrorName, unknown>;

const isSdkName = (name: A2aErrorName | RpcStatus): name is A2aErrorName => Object.hasOwn(SDK_ERRORS, name);

/** JSON-RPC's own codes, where they are more specific. */
const RPC_CODES: Readonly<Record<string, number>> = {
  invalid_json: A2A_ERROR_CODE.PARSE_ERROR,
  invalid_utf8: A2A_ERROR_CODE.PARSE_ERROR,
  payload_too_large: A2A_ERROR_CODE.INVALID_REQUEST,
  not_found: A2A_ERROR_CODE.METHOD_NOT_FOUND,
  internal: A2A_ERROR_CODE.INTERNAL_ERROR,
};

export function toFailure(error: unknown, log: Log, requestId: string): Failure {
  if (error instanceof A2AError) return fromSdkError(error, requestId);
  return fromBrokerError(toErrandError(error, log, requestId), requestId);
}

function fromSdkError(error: A2AError, requestId: string, metadata: Record<string, string> = {}): Failure {
  const http = restStatusFor(error);
  const { error: body } = toRestErrorBody(error, http);
  const info = error.toErrorInfo();
  return {
    http,
    code: toJsonRpcError(error).code,
    status: body.status,
    message: error.message,
    details: [{ ...info, metadata: { ...info.metadata, ...metadata, requestId } }],
    headers: {},
  };
}

function fromBrokerError(error: ErrandError, requestId: string): Failure {
  const { code } = error;
  const { status, recovery, retryable } = ERRORS[code];
  const { retry_after_seconds, details, delegation_id } = error.context;
  const violations = violationsOf(details?.issues);
  const own = error.context.recovery;
  const metadata = {
    code,
    // A2A has no details.issues.
    recovery:
      own ??
      (violations.length > 0
        ? "Correct the fields named in fieldViolations."
        : recovery.replaceAll("details.", "metadata.")),
    ...namedIn(code, details),
    retryable: String(retryable),
    requestId,
    ...(delegation_id !== undefined && { taskId: delegation_id }),
  };
  const headers = {
    ...errorHeaders(error),
    ...((retryable || retry_after_seconds !== undefined) && {
      "retry-after": String(retry_after_seconds ?? 1),
    }),
  };
  // Codes without an entry appear only on delegations, so they never get here.
  const name = A2A_ERRORS[code] ?? "INTERNAL";
  if (isSdkName(name)) {
    const failure = fromSdkError(new SDK_ERRORS[name](error.message), requestId, metadata);
    // HTTP has a status of its own for the type of a request, which proxies and clients know.
    const http = status === 415 ? status : failure.http;
    return { ...failure, http, headers, details: [...failure.details, ...violations] };
  }
  return {
    http: status ?? 500,
    code: RPC_CODES[code] ?? SERVER_ERROR,
    status: name,
    message: error.message,
    details: [errorInfo(code.toUpperCase(), metadata), ...violations],
    headers,
  };
}

/** The detail that the recovery names. */
function namedIn(code: ErrorCode, details: ErrandError["context"]["details"] = {}): Record<string, string> {
  const name = isNaming(code) ? NAMED_DETAILS[code] : "issues";
  return name === "issues" ? {} : { [name]: String(details[name]) };
}

/** An ErrorInfo with the broker's reason, where the protocol defines none. */
export const errorInfo = (reason: string, metadata: Record<string, string>): Detail => ({
  "@type": ERROR_INFO,
  reason,
  domain: "errand",
  metadata,
});

function violationsOf(issues: unknown): Detail[] {
  if (!Array.isArray(issues)) return [];
  const fieldViolations = issues.map(({ path, reason }) => ({
    field: String(path),
    description: String(reason),
  }));
  return [{ "@type": BAD_REQUEST, fieldViolations }];
}

/** The `error` of a JSON-RPC response. */
export const rpcError = ({ code, message, details }: Failure) => ({ code, message, data: details });

/** The body of an HTTP+JSON error. */
export const restError = ({ http, status, message, details }: Failure) => ({
  error: { code: http, status, message, details },
});

/** The body of an HTTP+JSON error in 0.3, which uses JSON-RPC's codes here too. */
export const restErrorV03 = ({ code, message, details }: Failure) => ({ code, message, data: details });
