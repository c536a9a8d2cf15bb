/** Budgets by day and month in words. */

import type { PeriodBudgets, PeriodBudgetsShown } from "../schema/budget.ts";
import { costText } from "./usage.ts";

type Limit = NonNullable<PeriodBudgets["day"]>;

/** `2,000,000 tokens, 50 USD` */
export function limitText({ tokens, ...cost }: Limit): string {
  const amounts = [tokens && `${tokens.toLocaleString("en")} tokens`, costText(cost)];
  return amounts.filter(Boolean).join(", ");
}

/** `day 50 USD; month 2,000,000 tokens`; empty without budgets. */
export const periodsText = ({ day, month }: PeriodBudgets = {}): string =>
  [day && `day ${limitText(day)}`, month && `month ${limitText(month)}`].filter(Boolean).join("; ");

/** `day 3.2 of 50 USD; month 1,200 of 2,000,000 tokens`: what was used, of each limit. */
export function usedText({ day, month }: PeriodBudgetsShown): string {
  const parts = Object.entries({ day, month }).flatMap(([period, shown]) => {
    if (shown === undefined) return [];
    const { limit, used } = shown;
    const amounts = [
      limit.tokens && `${used.tokens.toLocaleString("en")} of ${limitText({ tokens: limit.tokens })}`,
      limit.cost &&
        `${used.cost.toLocaleString("en", { maximumSignificantDigits: 12 })} of ${costText(limit)}`,
    ];
    return [`${period} ${amounts.filter(Boolean).join(", ")}`];
  });
  return parts.join("; ");
}
