/**
 * The entry of the list that the keys act on. When it goes away or asks something else, nothing is selected until the
 * person selects again, because the next key is meant for what was there before.
 */
import { type Entry, isQuestion } from "./entry.ts";

/** Keys that type no character: the letters of a comment select nothing. */
const SELECTING = ["up", "down", "pageup", "pagedown", "home", "end", "enter"];

export class Selection {
  #key: string | undefined;
  /** Of the selected entry, or where it was. */
  #row = 0;
  #isLost = false;

  /** The row of the selected entry, or of the one that is now in its place. */
  get row(): number {
    return this.#row;
  }

  /** Whether the selected entry went away, and none was selected since. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** The selected entry among these; the first one at the beginning. */
  among(entries: readonly Entry[]): Entry | undefined {
    const at = entries.findIndex((entry) => keyOf(entry) === this.#key);
    if (at >= 0) this.#row = at;
    else if (this.#key !== undefined) {
      this.#isLost = true;
      this.#key = undefined;
    }
    if (at < 0 && !this.#isLost) this.select(entries, this.#row);
    this.#row = inside(entries, this.#row);
    return this.#isLost ? undefined : entries[this.#row];
  }

  /** Selects the row, or the nearest that exists. */
  select(entries: readonly Entry[], row: number): void {
    this.#isLost = false;
    this.#row = inside(entries, row);
    const entry = entries[this.#row];
    this.#key = entry && keyOf(entry);
  }

  /** Selects again after a loss. Returns whether the key is used up by the loss. */
  pressLost(name: string, entries: readonly Entry[]): boolean {
    if (this.among(entries) !== undefined || !this.#isLost) return false;
    if (SELECTING.includes(name)) this.select(entries, this.#row);
    return true;
  }
}

/** Another question of the same delegation is another entry. */
const keyOf = (entry: Entry): string => (isQuestion(entry) ? entry.interrupt.id : entry.id);

const inside = (entries: readonly Entry[], row: number): number =>
  Math.max(0, Math.min(row, entries.length - 1));
