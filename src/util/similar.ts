/** Finds the word that was meant. */

const MAX_MISTAKES = 2;

/** The word with the fewest mistakes, at most two and fewer than half of its letters. */
export class Closest {
  readonly #word: string;
  #fewest: number;
  best: string | undefined;

  constructor(word: string) {
    this.#word = word;
    this.#fewest = Math.min(MAX_MISTAKES, Math.floor(word.length / 2)) + 1;
  }

  consider(candidate: string): void {
    const mistakes = distance(this.#word, candidate);
    if (mistakes < this.#fewest) [this.best, this.#fewest] = [candidate, mistakes];
  }
}

/**
 * The name that was meant. By its letters alone: `ttlSeconds` and `TTL-seconds` are `ttl_seconds`; so is `ttl`, its first
 * word.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const letters = lettersOf(name);
  const first = known.find(
    (one) => lettersOf(one) === letters || (letters !== "" && one.startsWith(`${name}_`)),
  );
  if (first !== undefined) return first;
  const closest = new Closest(letters);
  const byLetters = new Map(known.map((one) => [lettersOf(one), one]));
  for (const one of byLetters.keys()) closest.consider(one);
  return closest.best === undefined ? undefined : byLetters.get(closest.best);
}

export const lettersOf = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, "");

/** `Did you mean x?`, or nothing. */
export function didYouMean(word: string, known: readonly string[]): string {
  const closest = new Closest(word);
  for (const one of known) closest.consider(one);
  return closest.best === undefined ? "" : `Did you mean ${closest.best}?`;
}

/** The number of letters to insert, delete, replace or swap with their neighbor. */
export function distance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > MAX_MISTAKES) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwap =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      next[column] = Math.min(
        (last[column] ?? 0) + 1,
        (next[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwap ? (before[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    before = last;
    last = next;
  }
  return last[other.length] ?? Number.POSITIVE_INFINITY;
}
