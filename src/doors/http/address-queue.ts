/**
 * Starts requests in the order of a round robin over client addresses, a few per turn of the event loop, so that no number
 * of them holds up the requests of principals. Every request enters it whose connection has shown no valid token yet, or
 * which has no token: also the first of a principal, and from a trusted proxy each one, because it may be another client's.
 * Limit: it counts requests and not their work; none that needs no token does much.
 */
import { RoundRobin } from "../../util/round-robin.ts";
import { TurnBudget } from "../../util/turn-budget.ts";

/** Sixteen requests whose token is to be checked, or four without one, whose answer may be a whole page. */
const COST_PER_TURN = 16;
const costOf = (bearsToken: boolean): number => (bearsToken ? 1 : 4);

interface Waiting {
  readonly cost: number;
  /** False if its client has left: that costs nothing. */
  readonly start: () => boolean;
}

export class AddressQueue {
  readonly #budget: TurnBudget;
  readonly #waiting = new RoundRobin<Waiting>();

  /** `later` runs its argument in the next turn; for tests. */
  constructor(later?: (turn: () => void) => void) {
    this.#budget = new TurnBudget(COST_PER_TURN, () => this.#turn(), later);
  }

  /** Calls `start` in this turn if it has room, else in a later one. */
  add(address: string, bearsToken: boolean, start: () => boolean): void {
    const request = { cost: costOf(bearsToken), start };
    if (this.#waiting.isEmpty && this.#budget.hasRoom) this.#start(request);
    else this.#waiting.push(address, request);
  }

  #start({ cost, start }: Waiting): void {
    if (start()) this.#budget.spend(cost);
  }

  #turn(): void {
    while (this.#budget.hasRoom) {
      const request = this.#waiting.shift();
      if (!request) return;
      this.#start(request);
    }
  }
}
