/** A budget in words. */
import type { Budget, BudgetShown } from "../schema/budget.ts";
import { costText } from "./usage.ts";
import { durationText } from "./words.ts";

const numberText = (number: number): string => number.toLocaleString("en");

/** `1,200 of 1,000 tokens, 0.4 of 2 USD, 3 attempts`: what the tree has used, and the limits. */
export function budgetText({ limit = {}, used }: Pick<BudgetShown, "limit" | "used">): string {
  const of = (amount: number | undefined) => (amount === undefined ? "" : ` of ${numberText(amount)}`);
  const cost = costText(used);
  return [
    `${numberText(used.tokens)}${of(limit.tokens)} tokens`,
    limit.cost === undefined ? cost : `${numberText(used.cost ?? 0)} of ${costText(limit)}`,
    `${numberText(used.attempts)}${of(limit.attempts)} ${(limit.attempts ?? used.attempts) === 1 ? "attempt" : "attempts"}`,
    limit.seconds === undefined ? "" : `at most ${durationText(limit.seconds * 1000)}`,
  ]
    .filter((part) => part !== "")
    .join(", ");
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
