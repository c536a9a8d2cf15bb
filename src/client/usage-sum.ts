/** The usage of several delegations together, for example of a tree. */
import type { Delegation } from "../schema/delegation.ts";
import type { UsageSum } from "../schema/usage.ts";

const TOKENS = ["input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"] as const;

/** Tokens and costs of several delegations. */
export interface UsageOfAll extends Record<(typeof TOKENS)[number], number> {
  /** One for each currency. */
  readonly costs: readonly { readonly currency: string; readonly cost: number }[];
  /** False: more may have been used than was reported. */
  readonly complete: boolean;
}

/** Adds up what the delegations have used; undefined if none of them reported anything. */
export function sumUsage(delegations: Iterable<Pick<Delegation, "usage">>): UsageOfAll | undefined {
  const sums = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 };
  const costs = new Map<string, number>();
  let [isKnown, complete] = [false, true];
  for (const { usage } of delegations) {
    complete &&= usage?.total.complete ?? false;
    if (usage === undefined) continue;
    isKnown = true;
    const { total } = usage;
    for (const name of TOKENS) sums[name] += total[name] ?? 0;
    addCost(costs, total);
  }
  if (!isKnown) return undefined;
  const list = [...costs].map(([currency, cost]) => ({ currency, cost: Number(cost.toPrecision(12)) }));
  return { ...sums, costs: list.sort((a, b) => (a.currency < b.currency ? -1 : 1)), complete };
}

function addCost(costs: Map<string, number>, { cost, currency }: UsageSum): void {
  if (cost !== undefined && currency !== undefined) costs.set(currency, (costs.get(currency) ?? 0) + cost);
}
