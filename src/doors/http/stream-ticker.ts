/** One timer for all open streams, because there may be thousands. */

export interface Ticking {
  /** `now`: the time in ms. */
  tick(now: number): void;
}

const TICK_MS = 1_000;

export class StreamTicker {
  readonly #streams = new Set<Ticking>();
  #timer: NodeJS.Timeout | undefined;

  add(stream: Ticking): void {
    this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
  }

  delete(stream: Ticking): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    const now = Date.now();
    for (const stream of this.#streams) stream.tick(now);
  }
}
