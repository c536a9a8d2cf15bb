/**
 * What went wrong, as each binding of A2A writes it: from the broker's one error table, or an error of the SDK. Limit:
 * what is neither is `internal`, and says nothing of itself.
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
import { ERRORS, type ErrandError } from "../../schema/errors.ts";
import type { Log } from "../../telemetry/log.ts";
import { toErrandError } from "../http/problem.ts";

type Detail = Record<string, unknown>;

export interface Failure {
  readonly http: number;
  readonly code: number;
  readonly status: string;
  readonly message: string;
  /** Objects with an `@type`; an ErrorInfo first. */
  readonly details: readonly Detail[];
  readonly headers: Readonly<Record<string, string>>;
}

const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest";
/** JSON-RPC leaves -32000 to the server; A2A takes those below. */
const SERVER_ERROR = -32_000;

const CLASSES = {
  TaskNotFoundError,
  TaskNotCancelableError,
  PushNotificationNotSupportedError,
  UnsupportedOperationError,
  ContentTypeNotSupportedError,
  VersionNotSupportedError,
  RequestMalformedError,
} as const satisfies Record<A2aErrorName, unknown>;

const isSdkName = (name: A2aErrorName | RpcStatus): name is A2aErrorName => Object.hasOwn(CLASSES, name);

/** Codes of JSON-RPC's own that say more than the table. */
const CODES: Readonly<Record<string, number>> = {
  invalid_json: A2A_ERROR_CODE.PARSE_ERROR,
  invalid_utf8: A2A_ERROR_CODE.PARSE_ERROR,
  payload_too_large: A2A_ERROR_CODE.INVALID_REQUEST,
  not_found: A2A_ERROR_CODE.METHOD_NOT_FOUND,
  internal: A2A_ERROR_CODE.INTERNAL_ERROR,
};

export function toFailure(error: unknown, log: Log, requestId: string): Failure {
  if (error instanceof A2AError) return ofSdk(error, requestId);
  return ofBroker(toErrandError(error, log, requestId), requestId);
}

function ofSdk(error: A2AError, requestId: string, metadata: Record<string, string> = {}): Failure {
  const http = restStatusFor(error);
  const { error: body } = toRestErrorBody(error, http);
  const info = error.toErrorInfo();
  return {
    http,
    code: toJsonRpcError(error).code,
    status: body.status,
    message: error.message,
    details: [{ ...info, metadata: { ...info.metadata, ...metadata, request_id: requestId } }],
    headers: {},
  };
}

function ofBroker(error: ErrandError, requestId: string): Failure {
  const { code } = error;
  const { status, recovery, retryable } = ERRORS[code];
  const { retry_after_seconds, details, delegation_id } = error.context;
  const metadata = {
    code,
    recovery: error.context.recovery ?? recovery,
    retryable: String(retryable),
    request_id: requestId,
    ...(delegation_id !== undefined && { taskId: delegation_id }),
  };
  const headers = {
    ...(status === 401 && { "www-authenticate": 'Bearer realm="errand"' }),
    ...((retryable || retry_after_seconds !== undefined) && {
      "retry-after": String(retry_after_seconds ?? 1),
    }),
  };
  // What only ever stands on a delegation never gets here.
  const name = A2A_ERRORS[code] ?? "INTERNAL";
  const violations = violationsOf(details?.issues);
  if (isSdkName(name)) {
    const failure = ofSdk(new CLASSES[name](error.message), requestId, metadata);
    return { ...failure, headers, details: [...failure.details, ...violations] };
  }
  return {
    http: status ?? 500,
    code: CODES[code] ?? SERVER_ERROR,
    status: name,
    message: error.message,
    details: [ownInfo(code.toUpperCase(), metadata), ...violations],
    headers,
  };
}

/** Where the protocol names no reason of its own. */
export const ownInfo = (reason: string, metadata: Record<string, string>): Detail => ({
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

/** The `error` of a JSON-RPC answer. */
export const rpcError = ({ code, message, details }: Failure) => ({ code, message, data: details });

/** The body of an HTTP+JSON answer. */
export const restError = ({ http, status, message, details }: Failure) => ({
  error: { code: http, status, message, details },
});

/** The same in 0.3, which has JSON-RPC's codes here, too. */
export const restErrorV03 = ({ code, message, details }: Failure) => ({ code, message, data: details });
