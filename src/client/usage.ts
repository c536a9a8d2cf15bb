/** Usage in words, and the sum over several delegations. */
import type { Delegation } from "../schema/delegation.ts";
import type { Usage, UsageSum } from "../schema/usage.ts";

/** What was used, in one line: `1,500 tokens in (900 cached), 70 out, 0.02 USD`. */
export function usageText(used: UsageSum | UsageOfAll): string {
  const { input_tokens, output_tokens, cached_tokens, reasoning_tokens, complete } = used;
  const parts = [
    tokensText("in", input_tokens, "cached", cached_tokens),
    tokensText("out", output_tokens, "reasoning", reasoning_tokens),
    ...("costs" in used ? used.costs : [used]).map(costText),
  ].filter((part) => part !== "");
  return `${complete ? "" : "at least "}${parts.join(", ") || "nothing"}`;
}

/** The total, and the models. */
export function usageLine({ total, attempts }: Usage): string {
  const models = new Set(attempts.flatMap(({ model = [] }) => model));
  return [usageText(total), ...models].join(", ");
}

/** `0.02 USD`; empty without a cost. */
export const costText = ({ cost, currency = "" }: Pick<UsageSum, "cost" | "currency">): string =>
  cost === undefined ? "" : `${cost.toLocaleString("en", { maximumSignificantDigits: 6 })} ${currency}`;

function tokensText(way: string, tokens = 0, part: string, some = 0): string {
  if (tokens === 0 && some === 0) return "";
  const of = some === 0 ? "" : ` (${some.toLocaleString("en")} ${part})`;
  return `${tokens.toLocaleString("en")} tokens ${way}${of}`;
}

const TOKENS = ["input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"] as const;

/** Tokens and costs of several delegations together, for example of a tree. */
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
