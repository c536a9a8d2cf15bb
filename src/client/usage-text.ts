/** What was used, in one line: `1,500 tokens in (900 cached), 70 out, 0.02 USD`. */
import type { Usage, UsageSum } from "../schema/usage.ts";
import type { UsageOfAll } from "./usage-sum.ts";

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
