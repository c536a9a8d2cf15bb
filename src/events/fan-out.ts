/**
 * Wakes the readers of the feed in turns of the event loop: one event for a thousand of them, which one token may open,
 * must not hold up all other requests until each has it. Limit: readers wait in one line, whoever they belong to.
 */
import { TurnBudget } from "../util/turn-budget.ts";

export interface Reader {
  readonly wake: () => void;
}

/** What one turn delivers, about a millisecond of work: 64 small events, or 256 Ki characters. */
const CHARS_PER_TURN = 256 * 1024;
const MIN_CHARS_PER_READER = CHARS_PER_TURN / 64;

export class FanOut {
  readonly #budget: TurnBudget;
  readonly #waiting = new Map<Reader, number>();

  /** `later` runs its argument in the next turn; for tests. */
  constructor(later?: (turn: () => void) => void) {
    this.#budget = new TurnBudget(CHARS_PER_TURN, () => this.#turn(), later);
  }

  /** Wakes the reader in this turn if it has room, else in a later one. `chars`: the size of what it gets. */
  wake(reader: Reader, chars: number): void {
    if (this.#waiting.size === 0 && this.#budget.hasRoom) this.#wake(reader, chars);
    else this.#waiting.set(reader, (this.#waiting.get(reader) ?? 0) + chars);
  }

  #wake(reader: Reader, chars: number): void {
    this.#budget.spend(Math.max(chars, MIN_CHARS_PER_READER));
    reader.wake();
  }

  #turn(): void {
    for (const [reader, chars] of this.#waiting) {
      if (!this.#budget.hasRoom) return;
      this.#waiting.delete(reader);
      this.#wake(reader, chars);
    }
  }
}
