/** Iterates over something that may be silent for long, and also when something else wakes the reader. */
export class Wakes {
  #woken = false;
  #resolve: (() => void) | undefined;

  wake(): void {
    this.#woken = true;
    this.#resolve?.();
  }

  /** Yields each item, and null after a wake. The caller ends `items`, which otherwise may never come to an end. */
  async *over<T>(items: AsyncIterator<T, unknown, undefined>): AsyncGenerator<T | null, void, undefined> {
    // A reader that leaves does not wait for it, so nothing else would handle its rejection.
    const advance = () => {
      const next = items.next();
      next.catch(() => {});
      return next;
    };
    let next = advance();
    for (;;) {
      const woken = new Promise<null>((resolve) => {
        this.#resolve = () => resolve(null);
        if (this.#woken) resolve(null);
      });
      const first = await Promise.race([next, woken]);
      if (first === null) {
        this.#woken = false;
        yield null;
      } else {
        if (first.done === true) return;
        next = advance();
        yield first.value;
      }
    }
  }
}
