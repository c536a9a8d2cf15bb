/** A count of bytes in memory, by owner and in total. */
export class OwnedBytes {
  readonly #bytes = new Map<string, number>();
  #total = 0;

  /** The bytes of one owner, or of all. */
  of(owner?: string): number {
    return owner === undefined ? this.#total : (this.#bytes.get(owner) ?? 0);
  }

  /** `bytes` may be negative. */
  add(owner: string, bytes: number): void {
    this.#total += bytes;
    const sum = this.of(owner) + bytes;
    if (sum > 0) this.#bytes.set(owner, sum);
    else this.#bytes.delete(owner);
  }

  /** The owner with the most bytes; an empty string if there is none. */
  largest(): string {
    let most = "";
    for (const [owner, bytes] of this.#bytes) if (bytes > this.of(most)) most = owner;
    return most;
  }
}
