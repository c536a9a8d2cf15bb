/**
 * Budgets: how much a delegation and everything under it may use. Limit: the broker counts what workers report, so work
 * may use more between two reports, and until a lease that uses too much is stopped.
 */
import * as z from "zod";
import { currencySchema } from "./currency.ts";
import { delegationIdSchema, instantSchema } from "./values.ts";

export const budgetSchema = z.strictObject({
  /** Input and output tokens together, 1 to 10^12. */
  tokens: z.int().min(1).max(1e12).optional(),
  /** In `currency`, more than 0, up to 10^12. */
  cost: z.number().positive().max(1e12).optional(),
  /** The currency of the cost, ISO 4217, for example `USD`. */
  currency: currencySchema.optional(),
  /** Seconds from the first lease, with all waits, up to a year; not those in which the broker asks for a larger budget. */
  seconds: z.number().positive().max(31_536_000).optional(),
  /** Attempts of all delegations together, 1 to 10^6. */
  attempts: z.int().min(1).max(1e6).optional(),
});
/** At least one amount. A delegation that uses more exceeds its budget. */
export type Budget = z.output<typeof budgetSchema>;

const periodBudgetSchema = z.strictObject({
  /** Input and output tokens together, 1 to 10^12. */
  tokens: z.int().min(1).max(1e12).optional(),
  /** In `currency`, more than 0, up to 10^12. Costs in other currencies do not count. */
  cost: z.number().positive().max(1e12).optional(),
  /** The currency of the cost, ISO 4217, for example `USD`. */
  currency: currencySchema.optional(),
});

/** What may be used in a period. When it is used up, new work is refused until the next period; work in progress goes on. */
export const periodBudgetsSchema = z
  .strictObject({
    /** From midnight to midnight, UTC. */
    day: periodBudgetSchema.optional(),
    /** A month of the calendar, UTC. */
    month: periodBudgetSchema.optional(),
  })
  .refine(({ day, month }) => [day, month].every((one) => one === undefined || isLimiting(one)), {
    error: "name tokens or a cost in each period",
  })
  .refine(
    ({ day, month }) =>
      [day, month].every((one) => (one?.cost === undefined) === (one?.currency === undefined)),
    { error: "a cost needs its currency, and a currency its cost" },
  );
/** Budgets by day and month. */
export type PeriodBudgets = z.output<typeof periodBudgetsSchema>;

const periodPatchSchema = z.strictObject({
  /** Input and output tokens together; null: any number. */
  tokens: z.int().min(1).max(1e12).nullish(),
  /** In `currency`; null: any cost. */
  cost: z.number().positive().max(1e12).nullish(),
  /** The currency of the cost; null with it. */
  currency: currencySchema.nullish(),
});

/** Changes to budgets by day and month: what is left out stays. */
export const periodBudgetsPatchSchema = z.strictObject({
  /** From midnight to midnight, UTC; null: no such budget. */
  day: periodPatchSchema.nullish(),
  /** A month of the calendar, UTC; null: no such budget. */
  month: periodPatchSchema.nullish(),
});

const periodBudgetShownSchema = z.strictObject({
  /** What may be used. */
  limit: periodBudgetSchema,
  /** What was used since the period began. */
  used: z.strictObject({
    /** Input and output tokens together. */
    tokens: z.int().min(0),
    /** In the currency of the limit. */
    cost: z.number().min(0),
  }),
  /** When the period ends, and nothing is used again. */
  resets_at: instantSchema,
});

export const periodBudgetsShownSchema = z.strictObject({
  /** Today, UTC. */
  day: periodBudgetShownSchema.optional(),
  /** This month of the calendar, UTC. */
  month: periodBudgetShownSchema.optional(),
});
/** Budgets by day and month, with what was used. */
export type PeriodBudgetsShown = z.output<typeof periodBudgetsShownSchema>;

/** Whether it limits anything. */
export const isLimiting = ({ currency: _, ...amounts }: Budget): boolean =>
  Object.values(amounts).some((amount) => amount !== undefined);

/** What the broker does with a delegation that exceeds its budget: `fail` it, or `ask` its delegator for more. */
export const onBudgetSchema = z.enum(["fail", "ask"]);

export const budgetShownSchema = z.strictObject({
  /** What may be used; absent: it has no budget of its own. */
  limit: budgetSchema.optional(),
  /** What it and everything under it have used, as far as it was reported. The cost is that in the budget's currency. */
  used: z.strictObject({
    /** Input and output tokens together. */
    tokens: z.int().min(0),
    /** Absent: no budget here or above limits the cost. */
    cost: z.number().min(0).optional(),
    /** Of the cost. */
    currency: currencySchema.optional(),
    /** How many attempts have begun. */
    attempts: z.int().min(0),
  }),
  /** The nearest delegation above whose budget this one is a part of; absent: there is none. */
  of: delegationIdSchema.optional(),
  /** `ask`: if it exceeds its budget, the broker asks its delegator for more; absent: it fails. */
  on_budget: z.literal("ask").optional(),
  /** More was used than its limit allows. */
  exceeded: z.literal(true).optional(),
  /** When it fails, or the broker asks, unless it ends before; absent: nothing is exceeded, and the time is not limited. */
  stops_at: instantSchema.optional(),
});
/** The budget of a delegation, and what its tree has used. */
export type BudgetShown = z.infer<typeof budgetShownSchema>;
