/**
 * Whether delegators take turns as they should. The model does not predict whose turn it is, because several delegations that
 * one sweep queues are in no known order. It checks the bound that follows from the turns: while a delegation waits, another
 * delegator gets as many turns as its weight allows, and one more. Limit: new work; returned work comes before it.
 */
import { expect } from "vitest";
import { isStopped } from "./budgets.ts";
import type { Item } from "./item.ts";

type Weights = Readonly<Record<string, number>>;

interface Wait {
  /** When it was queued. */
  readonly place: number;
  /** The turns that its delegator takes up to it: for what waits before it, and for what was removed. */
  readonly turns: number;
  /** By delegator, the leases of its band since then. */
  readonly passed: Map<string, number>;
}

const bandOf = ({ target, priority }: Item): string => `${target} ${priority}`;
/** It has a ticket that takes turns. */
const isWaiting = ({ state, queued, returned }: Item): boolean =>
  state === "submitted" && queued && !returned;
/** Nobody waits who is over its budget: a worker that would get it does not, and its ticket is gone. */
const waitsAt = (item: Item, now: number): boolean => isWaiting(item) && !isStopped(item.budget, now);

export class Turns {
  readonly #waits = new Map<Item, Wait>();
  /** By band and delegator: how much waiting work was removed. Later work waits for those turns, too. */
  readonly #removed = new Map<string, number>();

  removed(item: Item): void {
    const name = `${bandOf(item)} ${item.delegator}`;
    this.#removed.set(name, (this.#removed.get(name) ?? 0) + 1);
  }

  /** Notes who waits before the next lease. */
  look(items: readonly Item[], now: number): void {
    const waiting = items.filter(isWaiting);
    for (const item of this.#waits.keys()) if (!waitsAt(item, now)) this.#waits.delete(item);
    for (const item of waiting.filter((one) => waitsAt(one, now))) {
      if (this.#waits.get(item)?.place === item.place) continue;
      const [band, { delegator, place }] = [bandOf(item), item];
      const own = waiting.filter((one) => bandOf(one) === band && one.delegator === delegator);
      const before = own.filter((one) => one !== item && one.place <= place).length;
      const turns = before + 1 + (this.#removed.get(`${band} ${delegator}`) ?? 0);
      this.#waits.set(item, { place, turns, passed: new Map() });
    }
  }

  /** Counts a lease for those that wait in its band. */
  granted(granted: Item, weights: Weights): void {
    this.#waits.delete(granted);
    if (granted.returned) return;
    const { delegator: other } = granted;
    const weightOf = (delegator: string) => weights[delegator] ?? 1;
    for (const [item, { turns, passed }] of this.#waits) {
      if (bandOf(item) !== bandOf(granted) || item.delegator === other) continue;
      // Since the look, it has joined the line of its conversation.
      if (!isWaiting(item)) continue;
      const leases = (passed.get(other) ?? 0) + 1;
      passed.set(other, leases);
      const most = Math.floor((turns * weightOf(other)) / weightOf(item.delegator)) + 1;
      expect(leases, `${other} took turns of ${item.delegator}`).toBeLessThanOrEqual(most);
    }
  }
}
