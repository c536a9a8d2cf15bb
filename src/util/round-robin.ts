/** A queue with a line for each owner. The owners take turns, so that a long line of one holds up no other. */
export class RoundRobin<T> {
  /** The owner whose turn is next is first. */
  readonly #lines = new Map<string, T[]>();

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  push(owner: string, item: T): void {
    const line = this.#lines.get(owner);
    if (line) line.push(item);
    else this.#lines.set(owner, [item]);
  }

  /** Removes and returns the first of the next owner's line; undefined if nothing waits. */
  shift(): T | undefined {
    const [next] = this.#lines;
    if (!next) return undefined;
    const [owner, line] = next;
    this.#lines.delete(owner);
    const item = line.shift();
    if (line.length > 0) this.#lines.set(owner, line);
    return item;
  }
}
