/** The pause before a gateway that ended is started again: longer after each one that did not last. */

const FIRST_MS = 100;
export const LONGEST_MS = 30_000;
/** A gateway that lived for this long did not fail at its start. */
const STABLE_MS = 10_000;

export class RestartDelays {
  #failures = 0;

  next(livedMs: number): number {
    if (livedMs >= STABLE_MS) this.#failures = 0;
    const ms = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(this.#failures, 16));
    this.#failures += 1;
    return ms;
  }
}
