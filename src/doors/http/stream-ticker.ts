/**
 * One timer for all open streams, because there may be thousands. Each is looked at about once a second, a part of them
 * at a time: after an event that all got, all want their comment at the same moment, and nothing else may wait so long.
 */

export interface Ticking {
  /** `now`: the time in ms. */
  tick(now: number): void;
}

const ROUND_MS = 1_000;
const PARTS = 20;

export class StreamTicker {
  readonly #streams = new Set<Ticking>();
  /** Those that this round has not reached yet. */
  #round = this.#streams.values();
  #timer: NodeJS.Timeout | undefined;

  add(stream: Ticking): void {
    this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.#tick(), ROUND_MS / PARTS).unref();
  }

  delete(stream: Ticking): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    const now = Date.now();
    let left = Math.ceil(this.#streams.size / PARTS);
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
