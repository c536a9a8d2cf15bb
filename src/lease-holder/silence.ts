/**
 * How long a holder may work on without a word from the broker. Time counts by the clock that shows more: the monotonic
 * one stops while a machine sleeps, the other one may be set back.
 */

/** After a pause of the process, the broker has this long to answer. */
const AFTER_PAUSE_MS = 5000;
/** A tick that comes later than this shows that the process did not run: it slept, was stopped, or was blocked. */
const LATE_MS = 2000;

/** One moment, by both clocks. */
export interface Moment {
  /** By `performance.now()`, ms. */
  readonly monotonic: number;
  /** By `Date.now()`, ms. */
  readonly wall: number;
}

export const now = (): Moment => ({ monotonic: performance.now(), wall: Date.now() });

const msBetween = (from: Moment, to: Moment): number =>
  Math.max(to.monotonic - from.monotonic, to.wall - from.wall);

/**
 * An outage of the broker extends a lease by its own length, so a holder that fails to reach the broker works on for two
 * lengths. A holder that did not run has seen no outage: once one length is over, it only waits for an answer.
 */
export class Silence {
  readonly #leaseMs: number;
  /** When the newest call that the broker answered was sent. */
  #since: Moment;
  #lastTick: Moment;
  #limitMs: number;

  /** `since`: when the lease arrived. */
  constructor(leaseMs: number, since: Moment) {
    this.#leaseMs = leaseMs;
    this.#since = since;
    this.#lastTick = since;
    this.#limitMs = 2 * leaseMs;
  }

  /** The broker answered a call that was sent at `sent`. */
  answered(sent: Moment): void {
    if (msBetween(this.#since, sent) <= 0) return;
    this.#since = sent;
    this.#limitMs = 2 * this.#leaseMs;
  }

  /** Call it every `everyMs`: returns whether the process was paused since the last call. */
  tick(at: Moment, everyMs: number): boolean {
    const wasPaused = msBetween(this.#lastTick, at) > everyMs + LATE_MS;
    this.#lastTick = at;
    const silentMs = msBetween(this.#since, at);
    if (wasPaused && silentMs > this.#leaseMs) this.#limitMs = silentMs + AFTER_PAUSE_MS;
    return wasPaused;
  }

  /** Since the newest call that the broker answered was sent, ms. */
  ms(at: Moment): number {
    return msBetween(this.#since, at);
  }

  /** How long the holder may still work on without an answer, ms. */
  leftMs(at: Moment): number {
    return Math.max(0, this.#limitMs - this.ms(at));
  }

  isTooLong(at: Moment): boolean {
    return this.ms(at) > this.#limitMs;
  }
}
