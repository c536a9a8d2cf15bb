/** Bounds how many notifications one gateway sends at once, so that slow receivers do not hold up callbacks and other owners. */
const MOST = 12;
const MOST_OF_ONE = 4;

export class Slots {
  #running = 0;
  readonly #of = new Map<string, number>();

  /** Takes a slot; call the returned function to free it. Null: none is free. */
  acquire(owner: string): (() => void) | null {
    const own = this.#of.get(owner) ?? 0;
    if (this.#running >= MOST || own >= MOST_OF_ONE) return null;
    this.#running += 1;
    this.#of.set(owner, own + 1);
    return () => {
      this.#running -= 1;
      const left = (this.#of.get(owner) ?? 1) - 1;
      if (left === 0) this.#of.delete(owner);
      else this.#of.set(owner, left);
    };
  }
}
