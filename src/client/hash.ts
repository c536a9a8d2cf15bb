/** A short hash of a text, for names. Limit: 64 bits prevent accidental collisions, not deliberate ones. */

const PRIME = 0x100000001b3n;
const OFFSET = 0xcbf29ce484222325n;

/** FNV-1a, 16 hex digits. */
function hashOf(text: string): string {
  let hash = OFFSET;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * PRIME);
  }
  return hash.toString(16).padStart(16, "0");
}

/** Numbers equal texts in the order in which they come, so that each gets a name of its own. */
export class Ordinals {
  readonly #counts = new Map<string, number>();

  /** The text's hash and a number, which counts the calls with this text from 1. */
  name(text: string): string {
    const hash = hashOf(text);
    const count = (this.#counts.get(hash) ?? 0) + 1;
    this.#counts.set(hash, count);
    return `${hash}-${count}`;
  }
}
