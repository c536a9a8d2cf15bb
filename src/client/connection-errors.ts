/**
 * Errors of the connection to a broker: no connection, no answer, or an answer that no broker gives. Limit: a browser
 * does not reveal the cause, so it is guessed from whether the broker ever answered.
 */
import { type ErrandApiError, localError } from "./errors.ts";
import type { HttpResponse } from "./transport.ts";

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

/** The CLI has other words for these. */
export const RECOVERIES = {
  invalid_url: "Pass the broker's URL, for example http://127.0.0.1:4180.",
  no_answer: "Try again; check the broker's health with GET /readyz.",
  unreachable: "Start the broker with 'errand serve', or check the URL.",
  connection_lost: "Try again with the same Idempotency-Key; the outcome is unknown.",
} as const;

/** Throws `invalid_url` for a URL that cannot be a broker's. A path is legal: a proxy may serve a broker below one. */
export function checkUrl(url: string): void {
  const detail = urlProblem(url);
  if (detail === undefined) return;
  throw localError({ code: "invalid_url", category: "CONFIG", detail, recovery: RECOVERIES.invalid_url });
}

/** What is wrong with the URL of a broker. The text has no credentials, query or fragment: they may be secret. */
export function urlProblem(url: string): string | undefined {
  if (!URL.canParse(url) || !/^https?:/i.test(url)) return `'${withoutSecrets(url)}' is not an http(s) URL`;
  const { username, password, origin, pathname } = new URL(url);
  const shown = `the URL '${origin}${pathname === "/" ? "" : pathname}'`;
  if (username || password)
    return `${shown} has a user or password; a broker has none, so pass a token by ERRAND_TOKEN`;
  // By the text: the URL of `http://host/?` has an empty query, but its text cannot be the start of a longer one.
  const [mark] = /[?#]/.exec(url) ?? [];
  if (mark === undefined) return undefined;
  return `${shown} is followed by a ${mark === "?" ? "query ('?…')" : "fragment ('#…')"}, which the URL of a broker has not`;
}

const withoutSecrets = (url: string): string =>
  url.replace(/[?#].*$/s, "").replace(/^([a-z][a-z0-9+.-]*:)?(\/\/)?[^/]*@/i, "$1$2***@");

/** `error` is what fetch threw when the time was over. */
export function noAnswer(url: string, error?: unknown): ErrandApiError {
  const proxy = proxyIn(error);
  return localError({
    code: "no_answer",
    category: "TRANSPORT",
    detail: `${url} did not answer in time${through(proxy)}`,
    recovery: proxy === undefined ? RECOVERIES.no_answer : checkProxy(proxy),
    retryable: true,
    details: UNKNOWN,
  });
}

/**
 * Converts an error of fetch, or of reading a response, to `not_a_broker`, `unreachable` or `connection_lost`.
 * `everReached`: a connection was made before; `hasAnswered`: the broker itself has answered before.
 */
export function connectionError(
  url: string,
  error: unknown,
  everReached: boolean,
  hasAnswered = everReached,
): ErrandApiError {
  const { code, message } = causeOf(error);
  const proxy = proxyIn(error);
  const via = through(proxy);
  const why = code ?? message;
  const inBrackets = why === undefined ? "" : ` (${why})`;
  if (why !== undefined && NOT_HTTP.test(why)) {
    return localError(
      {
        code: "not_a_broker",
        // The broker was there before, so this passes: a certificate is renewed, a proxy starts.
        category: hasAnswered ? "TRANSPORT" : "CONFIG",
        retryable: hasAnswered,
        detail: `no broker can be reached at ${url}${via} (${why})`,
        recovery:
          proxy !== undefined
            ? checkProxy(proxy)
            : "Check the URL's scheme (http or https), host and port, and the server's certificate.",
      },
      error,
    );
  }
  if (why === "") return proxyWantsCredentials(url, error);
  const refused = code !== undefined && NEVER_CONNECTED.includes(code);
  if (refused || (code === undefined && !everReached)) {
    return localError(
      {
        code: "unreachable",
        category: "TRANSPORT",
        detail: `nothing answers at ${url}${via}${inBrackets}`,
        recovery: refused
          ? RECOVERIES.unreachable
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
      detail: `the connection to ${url}${via} was lost${inBrackets}`,
      recovery: proxy === undefined ? RECOVERIES.connection_lost : checkProxy(proxy),
      retryable: true,
      details: UNKNOWN,
    },
    error,
  );
}

/** Whether the proxy or the server failed is not known then. */
export const checkProxy = (proxy: string): string =>
  `Check the proxy ${proxy}, correct or unset the variable, or name the broker's host in NO_PROXY; then check the broker.`;

export const through = (proxy: string | undefined): string =>
  proxy === undefined ? "" : ` through the proxy ${proxy}`;

/** The forward proxy that a failed call went through, without its credentials. */
function proxyIn(error: unknown): string | undefined {
  return error instanceof ProxiedError ? error.proxy : undefined;
}

/** A failure of a call through a forward proxy that the proxy did not explain. */
export class ProxiedError extends Error {
  override readonly name = "ProxiedError";
  /** Its host and port, and the variable that names it. */
  readonly proxy: string;

  constructor(proxy: string, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.proxy = proxy;
  }
}

/** The forward proxy that an answer came through, which may be the proxy's own. */
export const answeredThrough = new WeakMap<HttpResponse, string>();

/** Node's fetch hides an answer of 407: it fails without any reason. */
const proxyWantsCredentials = (url: string, error: unknown): ErrandApiError =>
  localError(
    {
      code: "proxy_auth_required",
      category: "TRANSPORT",
      detail: `a proxy in front of ${url} requires credentials (HTTP 407)`,
      recovery:
        "Check the proxy in front of the broker. If you need a proxy with a login, set HTTPS_PROXY or HTTP_PROXY.",
      retryable: true,
    },
    error,
  );

/** Node reports the cause of a failed fetch as a code; browsers hide it for security. */
function causeOf(error: unknown): { readonly code?: string; readonly message?: string } {
  let message: string | undefined;
  for (let at = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") return { code: at.code };
    // For an answer that is not HTTP, Node 24 has a name but no code.
    if (at.name === "HTTPParserError") return { code: at.name };
    message = at.message;
  }
  return message === undefined ? {} : { message };
}
