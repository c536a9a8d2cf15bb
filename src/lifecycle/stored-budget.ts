/** The budget of a delegation: as a submit stores it, and as it is shown; lua/lazy/budget.lua has the stored layout. */
import * as z from "zod";
import { type Budget, type BudgetShown, budgetShownSchema } from "../schema/budget.ts";
import { toInstant } from "../schema/values.ts";

const storedSchema = budgetShownSchema.omit({ stops_at: true }).extend({
  currency: z.string().optional(),
  begun: z.int(),
  from: z.number().optional(),
});
type Stored = z.infer<typeof storedSchema>;

const parse = (stored: string): Stored => storedSchema.parse(JSON.parse(stored));

/** What a child of this delegation inherits; `budget`: the field of the record. */
export interface Inherited {
  /** The nearest delegation above that has a budget. */
  readonly of: string;
  /** Of all costs. */
  readonly currency?: string | undefined;
}

export function inheritedFrom(id: string, budget: string | null): Inherited | undefined {
  if (budget === null) return undefined;
  const { limit, of, currency } = parse(budget);
  return { of: limit === undefined ? (of ?? id) : id, currency };
}

/** The field of a new record; undefined: neither it nor a delegation above it has a budget. */
export function newBudget(
  limit: Budget | undefined,
  asks: boolean,
  inherited: Inherited | undefined,
): string | undefined {
  if (limit === undefined && inherited === undefined) return undefined;
  const currency = limit?.currency ?? inherited?.currency;
  const used = { tokens: 0, attempts: 0, ...(currency !== undefined && { cost: 0, currency }) };
  const { of } = inherited ?? {};
  const stored: Stored = { limit, used, of, ...(asks && { on_budget: "ask" }), currency, begun: 0 };
  return JSON.stringify(stored);
}

/** The limits of the delegation itself, and whether it asks for more; null: it has none. */
export function ownBudget(budget: string | null): { readonly limit: Budget; readonly asks: boolean } | null {
  if (budget === null) return null;
  const { limit, on_budget } = parse(budget);
  return limit === undefined ? null : { limit, asks: on_budget === "ask" };
}

/** `budget` and `stop_at` are fields of the record. */
export function budgetOf(budget: string, stop_at: number | null | undefined): BudgetShown {
  const { currency: _hidden, begun: _begun, from: _from, ...shown } = parse(budget);
  return { ...shown, ...(typeof stop_at === "number" && { stops_at: toInstant(stop_at) }) };
}
