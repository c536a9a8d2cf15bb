/** Refuses budgets by day and month in currencies that do not exist. Limit: what is stored may have others. */
import type { PeriodBudgets } from "../../schema/budget.ts";
import { isKnownCurrency, UNKNOWN_CURRENCY } from "../../schema/currency.ts";
import { ErrandError } from "../../schema/errors.ts";

export function requireCurrencies(budgets: PeriodBudgets | null | undefined): void {
  for (const period of ["day", "month"] as const) {
    if (isKnownCurrency(budgets?.[period]?.currency)) continue;
    throw new ErrandError("invalid_request", `The currency of the budget by ${period} does not exist.`, {
      details: { issues: [{ path: `budgets.${period}.currency`, reason: UNKNOWN_CURRENCY }] },
    });
  }
}
