/**
 * A delegator's inbox as an async iterator: its delegations that finished or ask a question, after a cursor.
 * Limit: at least once; a result that was handled comes again unless its cursor was stored.
 */
import { type Delegation, isPending, resultPageSchema } from "../schema/delegation.ts";
import { BoundedMap } from "../util/bounded.ts";
import { pauseIfEarly } from "../util/timing.ts";
import { type Http, seconds } from "./http.ts";

/** One delegation of the inbox. */
export interface Result {
  /** The delegation in its current state, with its reply. */
  readonly delegation: Delegation;
  /** Store it once this result is handled, to continue after it later: `results({ after: cursor })`. */
  readonly cursor: string;
}

export interface ResultsOptions {
  /** The cursor to continue after. Default: the oldest result that the broker keeps. */
  readonly after?: string | undefined;
  /** Whether to wait for more at the end, until the signal aborts (default true), or to end there. */
  readonly follow?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Below the idle timeout of common proxies. */
const HOLD_SECONDS = 25;
/** How many delegations one request fetches; each may have up to 3 MiB. */
const PAGE = 20;
/**
 * How many of the last delegations are remembered, to skip repeats: one that asked a question and then finished is in
 * the inbox twice.
 */
const REMEMBERED = 1024;

/** Retries during an outage. Throws the signal's reason when it aborts, and errors that a retry cannot fix. */
export async function* readResults(http: Http, options: ResultsOptions): AsyncGenerator<Result, void> {
  const { after = "0", follow = true, signal } = options;
  const shown = new BoundedMap<string, number>(REMEMBERED);
  let cursor = after;
  for (;;) {
    const askedAt = performance.now();
    const holdSeconds = http.holdSeconds(follow ? HOLD_SECONDS : 0);
    const query = { after: cursor, wait_seconds: seconds(holdSeconds), limit: PAGE };
    const page = await http.requestUntilAvailable(resultPageSchema, {
      path: "/v1/results",
      query,
      signal,
      holdSeconds,
    });
    const fresh = page.results.filter((delegation) => isFresh(shown, delegation));
    for (const [index, delegation] of fresh.entries()) {
      // A page has one cursor, at its end: a reader that stops before it gets the page again.
      yield { delegation, cursor: index === fresh.length - 1 ? page.cursor : cursor };
    }
    const isEnd = page.cursor === cursor;
    cursor = page.cursor;
    if (isEnd && !follow) return;
    if (isEnd && holdSeconds > 0) await pauseIfEarly(askedAt, signal);
  }
}

/** `shown`: by delegation, the question or the version that was shown last. */
function isFresh(shown: Map<string, string | number>, delegation: Delegation): boolean {
  // Its question has been answered since; the result comes later.
  if (isPending(delegation.state)) return false;
  const { id, version, interrupt } = delegation;
  // While a question is held, the version changes with its holder's progress.
  const what = interrupt?.id ?? version;
  if (shown.get(id) === what) return false;
  shown.set(id, what);
  return true;
}
