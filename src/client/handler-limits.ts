/** How long a handler may run, and how long it may do so without a sign of life. */
import { MAX_TIMER_MS } from "../util/timing.ts";

/**
 * The reason of a handler's signal when it took too long. The delegation fails with the code `handler_timeout`; what the
 * handler does after that has no effect on it.
 */
export class HandlerTimeoutError extends Error {
  override readonly name = "HandlerTimeoutError";
  /** `timeout`: it ran longer. `idle`: it reported nothing for so long. */
  readonly limit: "timeout" | "idle";
  readonly seconds: number;

  constructor(limit: "timeout" | "idle", seconds: number) {
    super(
      limit === "timeout"
        ? `The handler ran longer than ${seconds} s.`
        : `The handler reported nothing for ${seconds} s.`,
    );
    this.limit = limit;
    this.seconds = seconds;
  }
}

export interface HandlerLimitOptions {
  readonly timeoutSeconds: number | undefined;
  readonly idleTimeoutSeconds: number | undefined;
  /** Called once, for the first limit that is reached. */
  readonly onReached: (error: HandlerTimeoutError) => void;
}

export class HandlerLimits {
  readonly #options: HandlerLimitOptions;
  readonly #timeout: ReturnType<typeof setTimeout> | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  /** The calls that wait for the broker, or for an answer. */
  #waiting = 0;
  #isOver = false;

  constructor(options: HandlerLimitOptions) {
    this.#options = options;
    const { timeoutSeconds } = options;
    this.#timeout = after(timeoutSeconds, () => this.#reach("timeout", timeoutSeconds ?? 0));
    this.touch();
  }

  /** Call it at each sign of life. */
  touch(): void {
    clearTimeout(this.#idle);
    const { idleTimeoutSeconds } = this.#options;
    if (this.#isOver || this.#waiting > 0) return;
    this.#idle = after(idleTimeoutSeconds, () => this.#reach("idle", idleTimeoutSeconds ?? 0));
  }

  /** The same for what a call returned: until a promise settles, the handler is not idle. Returns it. */
  sign<T>(returned: T): T {
    if (returned instanceof Promise) {
      this.#waiting += 1;
      const settled = () => {
        this.#waiting -= 1;
        this.touch();
      };
      returned.then(settled, settled);
    }
    this.touch();
    return returned;
  }

  /** The handler is done. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timeout);
    clearTimeout(this.#idle);
  }

  #reach(limit: HandlerTimeoutError["limit"], seconds: number): void {
    this.end();
    this.#options.onReached(new HandlerTimeoutError(limit, seconds));
  }
}

const after = (seconds: number | undefined, act: () => void): ReturnType<typeof setTimeout> | undefined =>
  seconds === undefined ? undefined : setTimeout(act, Math.min(seconds * 1000, MAX_TIMER_MS));
