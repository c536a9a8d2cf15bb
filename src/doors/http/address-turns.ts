/**
 * Begins the requests of addresses, which show no valid token, a few in each turn of the event loop and one address after
 * the other: no number of them holds up a request of a principal, or of another address. Limit: it counts requests, not
 * their work; none that needs no token does much.
 */
import { Lines } from "../../util/lines.ts";
import { TurnBudget } from "../../util/turn-budget.ts";

/** Sixteen requests whose token is to be checked, or four without one, whose answer may be a whole page. */
const COST_PER_TURN = 16;
const costOf = (bearsToken: boolean): number => (bearsToken ? 1 : 4);

interface Waiting {
  readonly cost: number;
  readonly serve: () => void;
}

export class AddressTurns {
  readonly #budget: TurnBudget;
  readonly #waiting = new Lines<Waiting>();

  /** `later` runs its argument in the next turn; for tests. */
  constructor(later?: (turn: () => void) => void) {
    this.#budget = new TurnBudget(COST_PER_TURN, () => this.#turn(), later);
  }

  /** Calls `serve` in this turn if it has room, else in a later one. */
  begin(address: string, bearsToken: boolean, serve: () => void): void {
    const request = { cost: costOf(bearsToken), serve };
    if (this.#waiting.isEmpty && this.#budget.hasRoom) this.#serve(request);
    else this.#waiting.push(address, request);
  }

  #serve({ cost, serve }: Waiting): void {
    this.#budget.spend(cost);
    serve();
  }

  #turn(): void {
    while (this.#budget.hasRoom) {
      const request = this.#waiting.shift();
      if (!request) return;
      this.#serve(request);
    }
  }
}
