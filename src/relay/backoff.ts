/** Retries calls of a run while the server is unavailable. Between runs, the broker's delays apply. */
import { backoffMs, sleep } from "../util/timing.ts";
import { RemoteError, type RemoteErrorKind } from "./remote-error.ts";

const LONGEST_MS = 5_000;
/** With the pauses between them, about half a minute. */
const TRIES = 9;

/** How often a run repeats a call that failed in this way. */
export function triesFor(kind: RemoteErrorKind): number {
  return kind === "unsent" || kind === "away" ? TRIES : 0;
}

/** Repeats a call as long as it surely had no effect. */
export function retryUnsent<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  return retry(signal, call, (kind) => (kind === "unsent" ? TRIES : 0));
}

/** Repeats a call while the server is unavailable, up to {@link triesFor} times. `note` gets the first failure. */
export function retryWhileAway<T>(
  signal: AbortSignal,
  call: () => Promise<T>,
  note?: (error: RemoteError) => void,
): Promise<T> {
  return retry(signal, call, triesFor, note);
}

async function retry<T>(
  signal: AbortSignal,
  call: () => Promise<T>,
  tries: (kind: RemoteErrorKind) => number,
  note: (error: RemoteError) => void = () => {},
): Promise<T> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await call();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RemoteError) || failures >= tries(error.kind)) throw error;
      if (failures === 0) note(error);
      await pause(failures, signal);
    }
  }
}

/** 250 ms doubling to 5 s, half of it random; rejects when the signal aborts. */
export function pause(round: number, signal: AbortSignal): Promise<void> {
  return sleep(backoffMs(round, 0, LONGEST_MS), signal);
}
