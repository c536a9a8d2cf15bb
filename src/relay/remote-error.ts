/**
 * Failures of the A2A server, in a few kinds that decide what to do next. The texts are fixed, because those of the
 * server or the network may contain secrets; of an answer that is not the server's, only the first words are shown.
 */
import {
  A2AError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";

/** Why a relay pauses, without the server's address. */
export const NO_SERVER = "its A2A server cannot be reached, or refuses it";
export const NO_CARD = "its A2A server has no valid agent card";
export const NOT_SERVER = "something else answers in place of its A2A server";

/**
 * - `unsent`: the server was not reached, is overloaded, or something else answered and did not pass the request on: it
 *   had no effect
 * - `away`: there was no answer of the server, so the effect is unknown
 * - `refused`: the server refuses the credentials, or the broker may not call its address
 * - `gone`: the server does not know the task
 * - `unsupported`: the server lacks the operation
 * - `failed`: the server refuses the request, or failed
 * - `broken`: the server has the request, and its answer is not valid A2A
 */
export type RemoteErrorKind = "unsent" | "away" | "refused" | "gone" | "unsupported" | "failed" | "broken";

export interface RemoteErrorOptions {
  readonly retryable?: boolean;
  readonly status?: number;
  readonly pause?: string;
}

export class RemoteError extends Error {
  override readonly name = "RemoteError";
  readonly kind: RemoteErrorKind;
  /** Whether another attempt may succeed. */
  readonly retryable: boolean;
  /** The status of the HTTP answer, if it proves nothing about its author. */
  readonly status: number | undefined;
  /** Why a relay that meets this failure pauses. */
  readonly pause: string;
  readonly options: RemoteErrorOptions;

  constructor(kind: RemoteErrorKind, message: string, options: RemoteErrorOptions = {}) {
    super(message);
    this.kind = kind;
    this.options = options;
    this.retryable = options.retryable ?? false;
    this.status = options.status;
    this.pause = options.pause ?? NO_SERVER;
  }
}

/** The server itself has answered, whatever it said. */
export const isAnswered = ({ kind }: RemoteError): boolean =>
  ["gone", "unsupported", "failed", "broken"].includes(kind);

/** The server may lack the operation, or something else answered. */
export const isMissing = ({ status }: RemoteError): boolean =>
  status === 404 || status === 405 || status === 501;

/** The connection failed: no byte of the request was sent. */
const UNSENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
  // Of a forward proxy.
  "PROXY_AUTH_REQUIRED",
  "PROXY_REFUSED",
  "PROXY_UNREACHABLE",
]);
const METHOD_NOT_FOUND = -32601;
const INTERNAL = -32603;

function causes(error: unknown): unknown[] {
  const found: unknown[] = [];
  for (let at = error; at !== undefined && found.length < 8; ) {
    found.push(at);
    at = at instanceof Error ? at.cause : undefined;
  }
  return found;
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** Converts what fetch or the SDK threw. */
export function toRemoteError(error: unknown): RemoteError {
  const chain = causes(error);
  const known = chain.find((one) => one instanceof RemoteError);
  if (known) return known;
  const a2aError = chain.find((one) => one instanceof A2AError);
  if (a2aError) return fromA2a(a2aError);
  const codes = chain.map((one) => member(one, "code")).filter((code) => typeof code === "string");
  const unsent = codes.find((code) => UNSENT.has(code));
  if (unsent !== undefined) return new RemoteError("unsent", `the A2A server cannot be reached (${unsent})`);
  if (chain.some(isProxyRefusal)) {
    const message = "a proxy before the A2A server wants credentials (HTTP 407)";
    return new RemoteError("unsent", message, { status: 407, pause: NOT_SERVER });
  }
  const isNetwork = error instanceof TypeError || codes.length > 0 || chain.some(isTimeout);
  if (isNetwork) return new RemoteError("away", "the connection to the A2A server was lost");
  return new RemoteError("broken", "the A2A server's answer is not valid A2A");
}

/** How undici's fetch reports an answer of 407: it hides the answer, and its error has neither text nor code. */
const isProxyRefusal = (error: unknown): boolean =>
  error instanceof TypeError &&
  error.message === "fetch failed" &&
  error.cause instanceof Error &&
  error.cause.message === "" &&
  member(error.cause, "code") === undefined;

export const isTimeout = (error: unknown): boolean =>
  error instanceof Error && (error.name === "AbortError" || error.name === "TimeoutError");

function fromA2a(error: Error): RemoteError {
  const code = member(error, "envelopeCode");
  if (error instanceof TaskNotFoundError)
    return new RemoteError("gone", "the A2A server does not know the task");
  if (error instanceof UnsupportedOperationError || code === METHOD_NOT_FOUND) {
    return new RemoteError("unsupported", "the A2A server does not support this operation");
  }
  if (error instanceof TaskNotCancelableError)
    return new RemoteError("failed", "the task cannot be canceled");
  const number = typeof code === "number" ? ` (${code})` : "";
  if (code === INTERNAL)
    return new RemoteError("failed", `the A2A server failed${number}`, { retryable: true });
  return new RemoteError("failed", `the A2A server refused the request${number}`);
}
