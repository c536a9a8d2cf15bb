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

export class RunEnd {
  /** Rejects with the signal's reason, or a LimitError. */
  readonly reached: Promise<never>;
  readonly #timers: ReturnType<typeof setTimeout>[] = [];
  readonly #off: () => void;
  #idle: ReturnType<typeof setTimeout> | undefined;

  constructor(signal: AbortSignal, { timeoutMs, idleTimeoutMs }: RunLimits) {
    let off = () => {};
    this.reached = new Promise((_, reject) => {
      const after = (ms: number | undefined, limit: LimitError["limit"]) => {
        if (ms === undefined) return undefined;
        const timer = setTimeout(() => reject(new LimitError(limit)), ms);
        this.#timers.push(timer);
        return timer;
      };
      after(timeoutMs, "timeout");
      this.#idle = after(idleTimeoutMs, "idle-timeout");
      off = onAbort(signal, () => reject(signal.reason));
      if (signal.aborted) reject(signal.reason);
    });
    this.reached.catch(() => undefined);
    this.#off = off;
  }

  /** The agent has printed something. */
  active(): void {
    this.#idle?.refresh();
  }

  close(): void {
    this.#off();
    for (const timer of this.#timers) clearTimeout(timer);
  }
}
