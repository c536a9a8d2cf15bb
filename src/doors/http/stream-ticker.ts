/**
 * One timer for all open streams, because there may be thousands. Each stream is checked about once a second, a part of them
 * in each tick: after an event for all, all need their keep-alive comment at the same time, and writing them all at once
 * would delay other requests.
 */

export interface Ticking {
  /** `now`: the time in ms. */
  tick(now: number): void;
}

const ROUND_MS = 1_000;
const TICK_MS = 50;

export class StreamTicker {
  readonly #streams = new Set<Ticking>();
  /** Continues through the streams; a new round begins at its end. */
  #round = this.#streams.values();
  #timer: NodeJS.Timeout | undefined;
  #tickedAt = 0;
  /** The streams to check now, times {@link ROUND_MS}: their number times the elapsed ms, less those checked. */
  #due = 0;

  add(stream: Ticking): void {
    this.#streams.add(stream);
    if (this.#timer) return;
    this.#tickedAt = Date.now();
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
  }

  delete(stream: Ticking): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    const now = Date.now();
    const { size } = this.#streams;
    // Counts elapsed time, not ticks, because a busy process ticks late.
    this.#due = Math.min(size * ROUND_MS, this.#due + size * Math.max(0, now - this.#tickedAt));
    this.#tickedAt = now;
    let left = Math.floor(this.#due / ROUND_MS);
    this.#due -= left * ROUND_MS;
    // A tick may remove streams.
    while (left > 0 && this.#streams.size > 0) {
      const { value, done } = this.#round.next();
      if (done) {
        this.#round = this.#streams.values();
        continue;
      }
      value.tick(now);
      left -= 1;
    }
  }
}
