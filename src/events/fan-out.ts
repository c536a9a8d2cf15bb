/**
 * Wakes the readers of the feed in turns of the event loop: one event for a thousand of them, which one token may open,
 * must not hold up all other requests until each has it. Limit: readers wait in one line, whoever they belong to.
 */
export interface Reader {
  readonly wake: () => void;
}

/** What one turn delivers: about a millisecond of work each. */
const READERS_PER_TURN = 64;
const CHARS_PER_TURN = 256 * 1024;

export class FanOut {
  readonly #later: (turn: () => void) => void;
  readonly #waiting = new Map<Reader, number>();
  #readers = 0;
  #chars = 0;
  #isTurnBegun = false;

  /** `later` runs its argument in the next turn; for tests. */
  constructor(later: (turn: () => void) => void = setImmediate) {
    this.#later = later;
  }

  /** Wakes the reader in this turn if it has room, else in a later one. `chars`: the size of what it gets. */
  wake(reader: Reader, chars: number): void {
    if (this.#waiting.size === 0 && this.#hasRoom) this.#wake(reader, chars);
    else this.#waiting.set(reader, (this.#waiting.get(reader) ?? 0) + chars);
  }

  get #hasRoom(): boolean {
    return this.#readers < READERS_PER_TURN && this.#chars < CHARS_PER_TURN;
  }

  #wake(reader: Reader, chars: number): void {
    this.#readers += 1;
    this.#chars += chars;
    if (!this.#isTurnBegun) {
      this.#isTurnBegun = true;
      this.#later(() => this.#turn());
    }
    reader.wake();
  }

  #turn(): void {
    this.#isTurnBegun = false;
    this.#readers = 0;
    this.#chars = 0;
    for (const [reader, chars] of this.#waiting) {
      if (!this.#hasRoom) return;
      this.#waiting.delete(reader);
      this.#wake(reader, chars);
    }
  }
}
