/** How a run retries a server that is away. Between runs the broker's delays count. */
import { backoffMs, sleep } from "../util/timing.ts";
import { RemoteError, type RemoteErrorKind } from "./remote-error.ts";

const LONGEST_MS = 5_000;
/** About half a minute. */
const TRIES = 9;

/** How often a call is repeated within a run, while the lease is held. */
export function triesFor(kind: RemoteErrorKind): number {
  return kind === "unsent" || kind === "away" ? TRIES : 0;
}

/** Repeats a call while the server is away, up to {@link triesFor} times. `note` is called with the first failure. */
export async function retryWhileAway<T>(
  signal: AbortSignal,
  ask: () => Promise<T>,
  note: (error: RemoteError) => void = () => {},
): Promise<T> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await ask();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RemoteError) || failures >= triesFor(error.kind)) throw error;
      if (failures === 0) note(error);
      await pause(failures, signal);
    }
  }
}

/** 250 ms doubling to 5 s, half of it random; rejects when the signal aborts. */
export function pause(round: number, signal: AbortSignal): Promise<void> {
  return sleep(backoffMs(round, 0, LONGEST_MS), signal);
}
