/** A short name for a text: the same text, the same name. Limit: 64 bits against accidents, not against anyone. */

const PRIME = 0x100000001b3n;
const OFFSET = 0xcbf29ce484222325n;

/** FNV-1a, 16 hex digits. */
export function hashOf(text: string): string {
  let hash = OFFSET;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * PRIME);
  }
  return hash.toString(16).padStart(16, "0");
}

/** Tells the first, second, ... of equal texts apart, in the order of asking. */
export class Ordinals {
  readonly #counts = new Map<string, number>();

  /** The text's name and how often it was asked for, this time included. */
  name(text: string): string {
    const hash = hashOf(text);
    const count = (this.#counts.get(hash) ?? 0) + 1;
    this.#counts.set(hash, count);
    return `${hash}-${count}`;
  }
}
