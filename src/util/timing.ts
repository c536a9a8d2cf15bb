/** Backoff with jitter, a sleep that a signal ends, and a time limit as an AbortSignal. */

/** The longest time of setTimeout(), 24 days; it fires at once for a longer one. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

const FIRST_MS = 250;
export const LONGEST_MS = 15_000;

/** `firstMs` before the first retry (`failures` 0), doubled with each failure up to `longestMs`. */
export const doublingMs = (failures: number, firstMs: number, longestMs: number): number =>
  Math.min(longestMs, firstMs * 2 ** Math.min(failures, 16));

/** 250 ms, doubling to `longestMs`; half of it is random. Never below `retryAfterMs`. */
export function backoffMs(failures: number, retryAfterMs = 0, longestMs = LONGEST_MS): number {
  const ceiling = doublingMs(failures, FIRST_MS, longestMs);
  const jittered = ceiling / 2 + (Math.random() * ceiling) / 2;
  // Many clients may get the same Retry-After, so spread their retries after it.
  return retryAfterMs > jittered ? retryAfterMs + Math.random() * FIRST_MS : jittered;
}

/** The callbacks of each signal, behind a single listener: runtimes report many listeners as a leak. */
const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls back when the signal aborts; the returned function unsubscribes. Unlike AbortSignal.any, which keeps a
 * reference to each signal that it combined.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const known = callbacksOf.get(signal);
  const callbacks = known ?? new Set<() => void>();
  if (!known) {
    callbacksOf.set(signal, callbacks);
    const callAll = () => {
      for (const one of [...callbacks]) one();
    };
    signal.addEventListener("abort", callAll, { once: true });
  }
  // A new function, so that the same callback can subscribe twice.
  const one = () => callback();
  callbacks.add(one);
  return () => void callbacks.delete(one);
}

/** Rejects with the signal's reason when it aborts. Limit: sleeps for 24 days at most. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(
      () => {
        off?.();
        resolve();
      },
      Math.min(ms, MAX_TIMER_MS),
    );
    const off =
      signal &&
      onAbort(signal, () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
  });
}

const EARLY_MS = 250;

/** Pauses if a long poll returned at once, as at a gateway that shuts down. Without the pause, the caller would spin. */
export async function pauseIfEarly(askedAt: number, signal?: AbortSignal): Promise<void> {
  if (performance.now() - askedAt < EARLY_MS) await sleep(EARLY_MS, signal);
}

/**
 * A signal that aborts with its parent or after some time. Close it, or the parent keeps a reference to it.
 * AbortSignal.any with AbortSignal.timeout does not work: Node 20 may collect the timeout, which then never fires.
 */
export class TimeLimit {
  readonly #controller = new AbortController();
  readonly #unsubscribe: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #expired = false;

  constructor(ms: number, parent?: AbortSignal) {
    if (parent?.aborted) {
      this.#controller.abort(parent.reason);
      return;
    }
    this.#unsubscribe =
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
    if (ms > MAX_TIMER_MS) {
      this.#timer = setTimeout(() => this.restart(ms - MAX_TIMER_MS), MAX_TIMER_MS);
      return;
    }
    this.#timer = setTimeout(() => {
      this.#expired = true;
      this.#controller.abort(new DOMException("The time limit ran out", "TimeoutError"));
    }, ms);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#unsubscribe?.();
  }
}
