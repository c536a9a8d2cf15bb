/** What ends a run from outside: its lease, and the limits of the person who runs the worker. */
import { onAbort } from "../../../util/timing.ts";
import type { RunLimits } from "../child.ts";

export class LimitError extends Error {
  override readonly name = "LimitError";
  readonly limit: "timeout" | "idle-timeout";

  constructor(limit: "timeout" | "idle-timeout") {
    super(limit);
    this.limit = limit;
  }
}

/** A limit whose time can stand still. */
class Countdown {
  readonly #onEnd: () => void;
  #leftMs: number;
  #since = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ms: number, onEnd: () => void) {
    this.#leftMs = ms;
    this.#onEnd = onEnd;
    this.resume();
  }

  pause(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#leftMs -= performance.now() - this.#since;
  }

  resume(): void {
    this.#since = performance.now();
    this.#timer = setTimeout(this.#onEnd, Math.max(0, this.#leftMs));
  }

  restart(ms: number): void {
    this.#leftMs = ms;
    if (this.#timer === undefined) return;
    this.pause();
    this.#leftMs = ms;
    this.resume();
  }
}

export class RunEnd {
  /** Rejects with the signal's reason, or a LimitError. */
  readonly reached: Promise<never>;
  readonly #whole: Countdown | undefined;
  readonly #idle: Countdown | undefined;
  readonly #idleMs: number;
  readonly #off: () => void;

  constructor(signal: AbortSignal, { timeoutMs, idleTimeoutMs }: RunLimits) {
    let end = (_reason: unknown) => {};
    this.reached = new Promise((_, reject) => {
      end = reject;
    });
    this.reached.catch(() => undefined);
    const after = (ms: number | undefined, limit: LimitError["limit"]) =>
      ms === undefined ? undefined : new Countdown(ms, () => end(new LimitError(limit)));
    this.#whole = after(timeoutMs, "timeout");
    this.#idle = after(idleTimeoutMs, "idle-timeout");
    this.#idleMs = idleTimeoutMs ?? 0;
    this.#off = onAbort(signal, () => end(signal.reason));
    if (signal.aborted) end(signal.reason);
  }

  /** The agent has printed something. */
  active(): void {
    this.#idle?.restart(this.#idleMs);
  }

  /** The time that this takes does not count. */
  async without<T>(work: Promise<T>): Promise<T> {
    this.#whole?.pause();
    this.#idle?.pause();
    try {
      return await work;
    } finally {
      this.#whole?.resume();
      this.#idle?.resume();
    }
  }

  close(): void {
    this.#off();
    this.#whole?.pause();
    this.#idle?.pause();
  }
}
