/**
 * One timer for all open streams, because there may be thousands. Each is looked at about once a second, a part of them
 * at a time: after an event that all got, all want their comment at the same moment, and nothing else may wait so long.
 */

export interface Ticking {
  /** `now`: the time in ms. */
  tick(now: number): void;
}

const ROUND_MS = 1_000;
const TICK_MS = 50;

export class StreamTicker {
  readonly #streams = new Set<Ticking>();
  /** Those that this round has not reached yet. */
  #round = this.#streams.values();
  #timer: NodeJS.Timeout | undefined;
  #tickedAt = 0;
  /** By how much the round is behind, in streams times {@link ROUND_MS}. */
  #behind = 0;

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
    // By the time that has passed, because a busy process ticks late.
    this.#behind = Math.min(size * ROUND_MS, this.#behind + size * Math.max(0, now - this.#tickedAt));
    this.#tickedAt = now;
    let left = Math.floor(this.#behind / ROUND_MS);
    this.#behind -= left * ROUND_MS;
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
