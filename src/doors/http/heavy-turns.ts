/**
 * Lets one request with a large body begin at a time, and rests for as long as its check took: a body with many values takes
 * the event loop for tens of milliseconds, and the requests of all others wait. So they get half of the time. Limit: what
 * such a request does after its first wait, say for Redis, is not counted.
 */
import { Lines } from "../../util/lines.ts";

/** After less, there is no rest. */
const SHORT_MS = 3;
/** The longest rest. A stall of the process is no reason for a longer one. */
const LONG_MS = 250;

export interface HeavyTimes {
  readonly now: () => number;
  /** Runs its argument in the next turn of the event loop. */
  readonly later: (run: () => void) => void;
  readonly after: (ms: number, run: () => void) => void;
}

const TIMES: HeavyTimes = {
  now: () => performance.now(),
  later: (run) => void setImmediate(run),
  after: (ms, run) => void setTimeout(run, ms),
};

export class HeavyTurns {
  readonly #times: HeavyTimes;
  readonly #waiting = new Lines<() => void>();
  #isTaken = false;

  constructor(times: HeavyTimes = TIMES) {
    this.#times = times;
  }

  /** Returns null if the request may begin now, otherwise a promise that resolves when its turn comes. */
  begin(owner: string): Promise<void> | null {
    if (!this.#isTaken) {
      this.#take();
      return null;
    }
    return new Promise((begin) => this.#waiting.push(owner, begin));
  }

  /** The request begins in this turn of the event loop; in the next one it is known how long that took. */
  #take(): void {
    const { now, later, after } = this.#times;
    this.#isTaken = true;
    const beganAt = now();
    later(() => {
      const tookMs = now() - beganAt;
      if (tookMs < SHORT_MS) this.#next();
      else after(Math.min(tookMs, LONG_MS), () => this.#next());
    });
  }

  #next(): void {
    this.#isTaken = false;
    const begin = this.#waiting.shift();
    if (!begin) return;
    this.#take();
    begin();
  }
}
