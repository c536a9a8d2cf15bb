/**
 * Waiting for an event of one delegation, bounded by time and by the caller's connection.
 * Limit: resolves without saying why; the caller looks at the record.
 */
import type { Entry } from "../../events/entry.ts";
import type { Feed } from "../../events/feed.ts";
import type { StoredDelegation } from "../../lifecycle/record.ts";
import type { Leaver, Leaving } from "../../queue/parked-polls.ts";

/**
 * Who waits here for a delegation that this very gateway may move: it is given the record that the move read, before the
 * feed brings the event. Limit: moves of other gateways are heard of by the feed alone.
 */
export class Awaited {
  readonly #waiting = new Map<string, Set<(record: StoredDelegation) => void>>();

  add(id: string, take: (record: StoredDelegation) => void): () => void {
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting.add(take));
    return () => {
      waiting.delete(take);
      if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
    };
  }

  give(record: StoredDelegation): void {
    for (const take of this.#waiting.get(record.id) ?? []) take(record);
  }
}

export interface Waiting {
  /** Resolves on the event, at the deadline, when the signal aborts, or on `stop`. */
  readonly done: Promise<void>;
  readonly stop: () => void;
}

export function waitUntil(
  feed: Feed,
  id: string,
  options: { readonly wait_seconds: number; readonly signal: Leaving },
  matches: (entry: Entry) => boolean,
): Waiting {
  let stop = () => {};
  const done = new Promise<void>((resolve) => {
    stop = () => {
      clearTimeout(timer);
      unsubscribe();
      options.signal.removeEventListener("abort", left);
      resolve();
    };
    const left: Leaver = { handleEvent: () => stop() };
    const unsubscribe = feed.subscribe(
      { kind: "delegation", id },
      { push: (entry) => matches(entry) && stop(), gap: stop },
    );
    const timer = setTimeout(stop, options.wait_seconds * 1000);
    options.signal.addEventListener("abort", left);
  });
  if (options.signal.aborted) stop();
  return { done, stop };
}
