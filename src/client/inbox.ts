/**
 * A caller's inbox as an async iterator: what it delegated that finished or asks something, behind a cursor.
 * Limit: each comes at least once; what is handled but whose cursor was not kept comes again.
 */

import { type Delegation, resultPageSchema } from "../schema/delegation.ts";
import { BoundedMap } from "../util/bounded.ts";
import { pauseIfEarly } from "../util/timing.ts";
import { type Http, seconds } from "./http.ts";

/** One delegation out of the inbox. */
export interface Result {
  /** As it stands now, its reply included. */
  readonly delegation: Delegation;
  /** Keep it once this result is handled, to go on behind it later: `results({ after: cursor })`. */
  readonly cursor: string;
}

export interface ResultsOptions {
  /** The cursor to go on behind. Default: the beginning, as far back as the broker keeps results. */
  readonly after?: string | undefined;
  /** Default true: at the end, wait for more until the signal aborts. False ends there. */
  readonly follow?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Below the idle cut of common proxies. */
const HOLD_SECONDS = 25;
/** One page's worth of whole delegations, each up to 3 MiB. */
const LIMIT = 20;
/** How many of the last ones are remembered: one that asked, then finished, is in the inbox twice. */
const REMEMBERED = 1024;

/** Waits out an outage, until the signal aborts (throws its reason). Throws errors that a retry cannot fix. */
export async function* readResults(http: Http, options: ResultsOptions): AsyncGenerator<Result, void> {
  const { after = "0", follow = true, signal } = options;
  const shown = new BoundedMap<string, number>(REMEMBERED);
  const holdSeconds = follow ? HOLD_SECONDS : 0;
  let cursor = after;
  for (;;) {
    const askedAt = performance.now();
    const query = { after: cursor, wait_seconds: seconds(holdSeconds), limit: LIMIT };
    const page = await http.insist(resultPageSchema, { path: "/v1/results", query, signal, holdSeconds });
    const fresh = page.results.filter((delegation) => isFresh(shown, delegation));
    for (const [index, delegation] of fresh.entries()) {
      // A page has one cursor, at its end: a reader that stops before it gets the page again.
      yield { delegation, cursor: index === fresh.length - 1 ? page.cursor : cursor };
    }
    const isEnd = page.cursor === cursor;
    cursor = page.cursor;
    if (isEnd && !follow) return;
    if (isEnd) await pauseIfEarly(askedAt, signal);
  }
}

function isFresh(shown: Map<string, number>, { id, state, version }: Delegation): boolean {
  // It asked once and was answered: its end is still to come.
  if (state === "submitted" || state === "working") return false;
  if (shown.get(id) === version) return false;
  shown.set(id, version);
  return true;
}
