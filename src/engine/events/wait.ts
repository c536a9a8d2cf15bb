/**
 * Waits for an event of one delegation, until the time is up or the caller leaves.
 * Limit: it does not say why the wait ended; the caller reads the record.
 */
import type { Entry } from "../../events/entry.ts";
import type { Feed } from "../../events/feed.ts";
import type { AbortListener, StopSignal } from "../../util/stop-signal.ts";

export interface Waiting {
  /** Resolves on the event, at the deadline, when the signal aborts, or on `stop`. */
  readonly done: Promise<void>;
  readonly stop: () => void;
}

export function waitUntil(
  feed: Pick<Feed, "subscribe">,
  id: string,
  options: { readonly wait_seconds: number; readonly signal: StopSignal },
  matches: (entry: Entry) => boolean,
): Waiting {
  let stop = () => {};
  const done = new Promise<void>((resolve) => {
    stop = () => {
      clearTimeout(timer);
      unsubscribe();
      options.signal.removeEventListener("abort", onAbort);
      resolve();
    };
    const onAbort: AbortListener = { handleEvent: () => stop() };
    const unsubscribe = feed.subscribe(
      { kind: "delegation", id },
      { push: (entry) => matches(entry) && stop(), gap: stop },
    );
    const timer = setTimeout(stop, options.wait_seconds * 1000);
    options.signal.addEventListener("abort", onAbort);
  });
  if (options.signal.aborted) stop();
  return { done, stop };
}
