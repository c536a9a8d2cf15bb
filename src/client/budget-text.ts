/** A budget in words. */
import type { Budget, BudgetShown } from "../schema/budget.ts";
import { costText } from "./usage.ts";
import { durationText } from "./words.ts";

const numberText = (number: number): string => number.toLocaleString("en");

/**
 * `1,200 of 1,000 tokens, 0.4 of 2 USD, 3 attempts`: what the tree has used, and the limits. An amount without a limit of
 * which nothing was used is left out.
 */
export function budgetText({ limit = {}, used }: Pick<BudgetShown, "limit" | "used">): string {
  const of = (amount: number | undefined) => (amount === undefined ? "" : ` of ${numberText(amount)}`);
  const isShown = (amount: number | undefined, most: number | undefined) => most !== undefined || amount;
  const attempts = (limit.attempts ?? used.attempts) === 1 ? "attempt" : "attempts";
  const parts = [
    isShown(used.tokens, limit.tokens) && `${numberText(used.tokens)}${of(limit.tokens)} tokens`,
    limit.cost === undefined
      ? used.cost && costText(used)
      : `${numberText(used.cost ?? 0)} of ${costText(limit)}`,
    isShown(used.attempts, limit.attempts) && `${numberText(used.attempts)}${of(limit.attempts)} ${attempts}`,
    limit.seconds !== undefined && `at most ${durationText(limit.seconds * 1000)}`,
  ];
  return parts.filter(Boolean).join(", ") || "nothing yet";
}

/** `1,000 tokens, 2 USD, 3 attempts, 30m`: the amounts of a limit. */
export function amountsText({ tokens, attempts, seconds, ...cost }: Budget): string {
  return [
    tokens !== undefined && `${numberText(tokens)} ${tokens === 1 ? "token" : "tokens"}`,
    costText(cost),
    attempts !== undefined && `${numberText(attempts)} ${attempts === 1 ? "attempt" : "attempts"}`,
    seconds !== undefined && durationText(seconds * 1000),
  ]
    .filter(Boolean)
    .join(", ");
}
