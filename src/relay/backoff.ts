/** How the relay bears with a server that is away or slow. Limit: within one run; after it the broker's delays count. */
import { RemoteError, type RemoteErrorKind } from "./remote-error.ts";

const FIRST_MS = 250;
const LONGEST_MS = 5_000;
/** About half a minute. */
const TRIES = 9;

/** How often it is tried again in place, with the lease held. */
export function patience(kind: RemoteErrorKind): number {
  return kind === "unsent" || kind === "away" ? TRIES : 0;
}

/** Asks again while the server is away, as long as the patience lasts. `note` hears of the first failure. */
export async function patiently<T>(
  signal: AbortSignal,
  ask: () => Promise<T>,
  note: (error: RemoteError) => void = () => {},
): Promise<T> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await ask();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RemoteError) || failures >= patience(error.kind)) throw error;
      if (failures === 0) note(error);
      await pause(failures, signal);
    }
  }
}

/** 250 ms doubling to 5 s, half of it random; rejects when the signal aborts. */
export function pause(round: number, signal: AbortSignal): Promise<void> {
  const ceiling = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(round, 8));
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const leave = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(
      () => {
        signal.removeEventListener("abort", leave);
        resolve();
      },
      ceiling / 2 + (Math.random() * ceiling) / 2,
    );
    signal.addEventListener("abort", leave, { once: true });
  });
}
