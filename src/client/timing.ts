/**
 * Time for clients: jittered backoff, a sleep that can be cut short, a time limit as an AbortSignal.
 * Limit: monotonic and local; nothing here compares clocks with the broker.
 */

const FIRST_MS = 250;
const LONGEST_MS = 15_000;

/** 250 ms doubling to 15 s, half of it random, never before what the broker asked for. */
export function backoffMs(failures: number, retryAfterMs = 0): number {
  const ceiling = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures, 16));
  const jittered = ceiling / 2 + (Math.random() * ceiling) / 2;
  // Everyone was told the same Retry-After; spread them behind it.
  return retryAfterMs > jittered ? retryAfterMs + Math.random() * FIRST_MS : jittered;
}

/** Who follows a signal. One listener each, however many follow: runtimes take many for a leak. */
const followers = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls back when the signal aborts; the answer takes it back. AbortSignal.any keeps what it combined. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const known = followers.get(signal);
  const callbacks = known ?? new Set<() => void>();
  if (!known) {
    followers.set(signal, callbacks);
    const all = () => {
      for (const follow of [...callbacks]) follow();
    };
    signal.addEventListener("abort", all, { once: true });
  }
  // A function of its own, so that the same callback twice is two followers.
  const follow = () => callback();
  callbacks.add(follow);
  return () => void callbacks.delete(follow);
}

/** Rejects with the signal's reason when it aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(() => {
      off?.();
      resolve();
    }, ms);
    const off =
      signal &&
      onAbort(signal, () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
  });
}

const BREATH_MS = 250;

/** A gateway that is shutting down answers early what it was asked to hold; do not spin on it. */
export async function breathe(askedAt: number, signal?: AbortSignal): Promise<void> {
  if (performance.now() - askedAt < BREATH_MS) await sleep(BREATH_MS, signal);
}

/** A signal that aborts with the parent's or after some time. Close it, so that the parent forgets it. */
export class TimeLimit {
  readonly #controller = new AbortController();
  readonly #leave: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #expired = false;

  constructor(ms: number, parent?: AbortSignal) {
    if (parent?.aborted) {
      this.#controller.abort(parent.reason);
      return;
    }
    this.#leave =
      parent &&
      onAbort(parent, () => {
        clearTimeout(this.#timer);
        this.#controller.abort(parent.reason);
      });
    this.restart(ms);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** True when the time ran out, false when the parent was aborted. */
  get expired(): boolean {
    return this.#expired;
  }

  restart(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#controller.signal.aborted || ms === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => {
      this.#expired = true;
      this.#controller.abort(new DOMException("The time limit ran out", "TimeoutError"));
    }, ms);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#leave?.();
  }
}
