/**
 * What may be spent in one turn of the event loop. Who finds no room waits, and goes on when `onTurn` is called in the next
 * turn; so much work of one kind never holds up the work of another.
 */
export class TurnBudget {
  readonly #most: number;
  readonly #onTurn: () => void;
  readonly #later: (turn: () => void) => void;
  #spent = 0;
  #isTurnBegun = false;

  /** `later` runs its argument in the next turn; for tests. */
  constructor(most: number, onTurn: () => void, later: (turn: () => void) => void = setImmediate) {
    this.#most = most;
    this.#onTurn = onTurn;
    this.#later = later;
  }

  get hasRoom(): boolean {
    return this.#spent < this.#most;
  }

  spend(cost: number): void {
    this.#spent += cost;
    if (this.#isTurnBegun) return;
    this.#isTurnBegun = true;
    this.#later(() => {
      this.#isTurnBegun = false;
      this.#spent = 0;
      this.#onTurn();
    });
  }
}
