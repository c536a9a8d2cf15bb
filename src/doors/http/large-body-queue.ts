/**
 * Starts requests with large bodies (above 16 KiB) principal by principal. A body with many values holds the event loop
 * for tens of milliseconds. After such a body the queue pauses for ten times as long, so that others meet few of them, and
 * rarely two. Fast ones share a turn of the event loop. Limit: only the first part of a request is measured, until it
 * waits for something, for Redis for instance.
 */
import { RoundRobin } from "../../util/round-robin.ts";
import { TurnBudget } from "../../util/turn-budget.ts";

/** A part that takes less needs no pause; in one turn, several may take this long together. */
const MIN_MS = 3;
/** From this time on, others notice it. */
const LONG_MS = 10;
/** The pause in multiples of the measured time: the request may take as much again after its first wait. */
const PAUSE_FACTOR = 4;
const LONG_PAUSE_FACTOR = 10;
/** The longest pause: a stall of the process is no reason for a longer one. */
const MAX_PAUSE_MS = 500;

export interface LargeBodyTimes {
  readonly now: () => number;
  /** Called in a microtask; runs its argument after all others, so also after those of a request that starts in it. */
  readonly settled: (run: () => void) => void;
  /** Runs its argument in the next turn of the event loop. */
  readonly later: (run: () => void) => void;
  readonly after: (ms: number, run: () => void) => void;
}

const TIMES: LargeBodyTimes = {
  now: () => performance.now(),
  settled: (run) => process.nextTick(run),
  later: (run) => void setImmediate(run),
  after: (ms, run) => void setTimeout(run, ms),
};

export class LargeBodyQueue {
  readonly #times: LargeBodyTimes;
  readonly #budget: TurnBudget;
  readonly #waiting = new RoundRobin<() => void>();
  /** A request starts, or the next one waits for its time. */
  #isTaken = false;
  #waitsForTurn = false;

  /** `times`: those that a test replaces. */
  constructor(times: Partial<LargeBodyTimes> = {}) {
    this.#times = { ...TIMES, ...times };
    this.#budget = new TurnBudget(MIN_MS, () => this.#turn(), this.#times.later);
  }

  /** Returns null if the request may start now, otherwise a promise that resolves at its time. Called in a microtask. */
  add(owner: string): Promise<void> | null {
    if (!this.#isTaken) {
      this.#isTaken = true;
      this.#measure();
      return null;
    }
    return new Promise<void>((start) => this.#waiting.push(owner, start)).then(() => this.#measure());
  }

  /** Called right before a request starts. What others do in the same turn does not count. */
  #measure(): void {
    const { now, settled, after } = this.#times;
    const startedAt = now();
    settled(() => {
      const tookMs = now() - startedAt;
      if (tookMs >= MIN_MS) return after(pauseAfter(tookMs), () => this.#next());
      this.#budget.spend(tookMs);
      this.#waitsForTurn = !this.#budget.hasRoom;
      if (!this.#waitsForTurn) this.#next();
    });
  }

  #turn(): void {
    if (!this.#waitsForTurn) return;
    this.#waitsForTurn = false;
    this.#next();
  }

  #next(): void {
    const start = this.#waiting.shift();
    if (start) start();
    else this.#isTaken = false;
  }
}

function pauseAfter(tookMs: number): number {
  const factor = tookMs < LONG_MS ? PAUSE_FACTOR : LONG_PAUSE_FACTOR;
  return Math.min(factor * tookMs, MAX_PAUSE_MS);
}
