/**
 * The error for an answer that is not the broker's: who sent it, and with what. Its `status` is 0, because the broker gave
 * no answer; that of the answer is in `details.status`.
 */
import { describing } from "../util/foreign-answer.ts";
import { answeredThrough, checkProxy, through } from "./connection-errors.ts";
import { ErrandApiError, localError } from "./errors.ts";
import { BROKER_HEADER, type KnownBroker } from "./known-broker.ts";
import { retryAfterMs } from "./retry-after.ts";
import type { HttpResponse } from "./transport.ts";

/** A maintenance page may name an hour, but the broker may be back sooner. */
const LONGEST_RETRY_MS = 60_000;

export interface NotTheBroker {
  /** The base URL of the broker. */
  readonly url: string;
  readonly response: HttpResponse;
  /** The beginning of the body. */
  readonly text: string;
  /** What this version does not understand in an answer that has the broker's id. */
  readonly why?: string | undefined;
  readonly known: KnownBroker;
  /** It is never shown, even if the answer repeats it. */
  readonly token?: string | undefined;
  /** Whether the broker may answer later: it has answered before, or the caller waits for it. */
  readonly mayComeBack: boolean;
}

export function notTheBroker(answer: NotTheBroker): ErrandApiError {
  const { url, response, text, why, known, token, mayComeBack } = answer;
  const { status, headers } = response;
  const describe = describing({ headers: { token: token ?? "" }, nameOf: () => url, namesTargets: true });
  const proxy = answeredThrough.get(response);
  const what =
    response.type === "opaqueredirect"
      ? `${url} answered with a redirect, which is not followed`
      : describe({ url: new URL(url), status, headers, text });
  const isTemporary = mayComeBack || status >= 500 || status === 429 || status === 408;
  // A proxy may have passed the call on and changed the answer. Anything else than JSON with 2xx is another server's answer.
  const mayHaveArrived = isTemporary || known.id !== undefined || (response.ok && isJson(text));
  const details = {
    ...(mayHaveArrived && { outcome: "unknown" }),
    status,
    ...(known.id !== undefined && { broker_id: known.id }),
  };
  const problem = localError({
    code: "invalid_response",
    category: isTemporary ? "TRANSPORT" : "CONFIG",
    detail: `${what}${through(proxy)}: ${whose(headers.get(BROKER_HEADER), known, why)}`,
    recovery: isTemporary
      ? ((proxy && checkProxy(proxy)) ??
        "Check what answers in the broker's place; the call may be repeated.")
      : ((proxy && checkProxy(proxy)) ??
        "Check that the URL is an Errand broker's, and what stands in front of it."),
    retryable: isTemporary,
    details,
  }).problem;
  const retryMs = retryAfterMs(headers);
  return new ErrandApiError(problem, { retryAfterMs: retryMs && Math.min(retryMs, LONGEST_RETRY_MS) });
}

function isJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}

function whose(id: string | null, { id: knownId }: KnownBroker, why: string | undefined): string {
  if (id === null || knownId === undefined) return "this is not an answer of an Errand broker";
  if (id === knownId) return `this is not an answer that this version understands${why ? ` (${why})` : ""}`;
  return `another broker (${id}) answers in place of ${knownId}; if it is the replacement, restart this program`;
}
