/**
 * Errors of the connection to a broker: no connection, no answer, or an answer that is not a broker's. Limit: a browser
 * does not reveal the cause, so it is guessed from whether the broker ever answered.
 */
import { type ErrandApiError, localError } from "./errors.ts";

const NEVER_CONNECTED = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
];
/** Not HTTP, an untrusted certificate, or a port that fetch refuses: a retry gets the same error. */
const NOT_HTTP =
  /^(?:HPE_|HTTPParserError$|ERR_SSL|ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|bad port$)/;
const UNKNOWN = { outcome: "unknown" };

export function invalidUrl(url: string): ErrandApiError {
  return localError({
    code: "invalid_url",
    category: "CONFIG",
    detail: `'${url}' is not an http(s) URL`,
    recovery: "Give the broker's URL, for example http://127.0.0.1:4180.",
  });
}

export function noAnswer(url: string): ErrandApiError {
  return localError({
    code: "no_answer",
    category: "TRANSPORT",
    detail: `${url} did not answer in time`,
    recovery: "Try again; check the broker's health with GET /readyz.",
    retryable: true,
    details: UNKNOWN,
  });
}

/** The error for what a failed read threw: `not_a_broker`, `unreachable` or `connection_lost`. */
export function failed(url: string, error: unknown, everReached: boolean): ErrandApiError {
  const { code, said } = causeOf(error);
  const why = code ?? said;
  const inBrackets = why === undefined ? "" : ` (${why})`;
  if (why !== undefined && NOT_HTTP.test(why)) {
    return localError(
      {
        code: "not_a_broker",
        category: "CONFIG",
        detail: `${url} cannot be spoken to as a broker (${why})`,
        recovery: "Check the URL: scheme (http or https), host and port.",
      },
      error,
    );
  }
  const refused = code !== undefined && NEVER_CONNECTED.includes(code);
  if (refused || (code === undefined && !everReached)) {
    return localError(
      {
        code: "unreachable",
        category: "TRANSPORT",
        detail: `nothing answers at ${url}${inBrackets}`,
        recovery: refused
          ? "Start the broker with 'errand serve', or check the URL."
          : "Check the URL, and that the broker's ERRAND_ALLOWED_ORIGINS names the origin of this page.",
        retryable: true,
        ...(!refused && { details: UNKNOWN }),
      },
      error,
    );
  }
  return localError(
    {
      code: "connection_lost",
      category: "TRANSPORT",
      detail: `the connection to ${url} was lost${inBrackets}`,
      recovery: "Try again with the same Idempotency-Key; the outcome is unknown.",
      retryable: true,
      details: UNKNOWN,
    },
    error,
  );
}

/** The error for an answer that no broker of this version gives, such as a proxy's or another program's. */
export function notOurs(url: string, status: number, why: string): ErrandApiError {
  const passing = status >= 500 || status === 429 || status === 408;
  return localError({
    code: "invalid_response",
    category: passing ? "TRANSPORT" : "CONFIG",
    detail: `${url} answered ${status} with something unexpected (${why})`,
    recovery: passing ? "Try again later." : "Check that the URL is an Errand broker of this version.",
    status,
    retryable: passing,
  });
}

/** Node names the cause of a failed fetch by a code; browsers hide it, for safety. */
function causeOf(error: unknown): { readonly code?: string; readonly said?: string } {
  let said: string | undefined;
  for (let at = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") return { code: at.code };
    // For an answer that is not HTTP, Node 24 has a name but no code.
    if (at.name === "HTTPParserError") return { code: at.name };
    said = at.message;
  }
  return said === undefined ? {} : { said };
}
