/**
 * Starts requests with large bodies (above 16 KiB) one at a time, principal by principal, and pauses after each for as long
 * as it held the event loop: a body with many values holds it for tens of milliseconds, and half of the time stays for the
 * requests of others. Limit: only the first synchronous part of a request is measured, not what it does after it has waited,
 * for Redis for instance.
 */
import { RoundRobin } from "../../util/round-robin.ts";

/** After a part that took less, there is no pause. */
const MIN_MS = 3;
/** The longest pause: a stall of the process is no reason for a longer one. */
const MAX_PAUSE_MS = 250;

export interface LargeBodyTimes {
  readonly now: () => number;
  /** Runs its argument in the next turn of the event loop. */
  readonly later: (run: () => void) => void;
  readonly after: (ms: number, run: () => void) => void;
}

const TIMES: LargeBodyTimes = {
  now: () => performance.now(),
  later: (run) => void setImmediate(run),
  after: (ms, run) => void setTimeout(run, ms),
};

export class LargeBodyQueue {
  readonly #times: LargeBodyTimes;
  readonly #waiting = new RoundRobin<() => void>();
  #isTaken = false;

  constructor(times: LargeBodyTimes = TIMES) {
    this.#times = times;
  }

  /** Returns null if the request may start now, otherwise a promise that resolves when its turn comes. */
  add(owner: string): Promise<void> | null {
    if (!this.#isTaken) {
      this.#take();
      return null;
    }
    return new Promise((start) => this.#waiting.push(owner, start));
  }

  /** The request starts in this turn of the event loop; in the next one it is known how long that took. */
  #take(): void {
    const { now, later, after } = this.#times;
    this.#isTaken = true;
    const startedAt = now();
    later(() => {
      const tookMs = now() - startedAt;
      if (tookMs < MIN_MS) this.#next();
      else after(Math.min(tookMs, MAX_PAUSE_MS), () => this.#next());
    });
  }

  #next(): void {
    this.#isTaken = false;
    const start = this.#waiting.shift();
    if (!start) return;
    this.#take();
    start();
  }
}
