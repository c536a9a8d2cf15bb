/** A count of bytes in memory, by owner and in total. An owner is a principal, or an address without a token. */
const ADDRESS = "address ";

export const addressOwner = (address: string): string => ADDRESS + address;

export class OwnedBytes {
  readonly #bytes = new Map<string, number>();
  #total = 0;
  #ofAddresses = 0;

  /** The bytes of one owner, or of all. */
  of(owner?: string): number {
    return owner === undefined ? this.#total : (this.#bytes.get(owner) ?? 0);
  }

  /** The bytes of all addresses together. */
  get ofAddresses(): number {
    return this.#ofAddresses;
  }

  /** `bytes` may be negative. */
  add(owner: string, bytes: number): void {
    this.#total += bytes;
    if (owner.startsWith(ADDRESS)) this.#ofAddresses += bytes;
    const sum = this.of(owner) + bytes;
    if (sum > 0) this.#bytes.set(owner, sum);
    else this.#bytes.delete(owner);
  }

  /** The owner with the most bytes; an empty string if there is none. */
  largest(): string {
    return this.#largest(() => true);
  }

  /** The same among addresses. */
  largestAddress(): string {
    return this.#largest((owner) => owner.startsWith(ADDRESS));
  }

  #largest(isOne: (owner: string) => boolean): string {
    let most = "";
    for (const [owner, bytes] of this.#bytes) if (isOne(owner) && bytes > this.of(most)) most = owner;
    return most;
  }
}
