/**
 * What agents used for their work, as workers report it. Limit: the broker knows no prices and converts no currencies.
 */
import * as z from "zod";
import { currencySchema, isKnownCurrency, UNKNOWN_CURRENCY } from "./currency.ts";

const tokensSchema = z.int().min(0).optional();

const amounts = {
  /** All input, with the cached. */
  input_tokens: tokensSchema,
  /** All output, with the reasoning. */
  output_tokens: tokensSchema,
  /** Of the input: read from a cache. */
  cached_tokens: tokensSchema,
  /** Of the output: the reasoning. */
  reasoning_tokens: tokensSchema,
  /** In `currency`, from 0 to 10^12; stored with 12 significant digits. */
  cost: z.number().min(0).max(1e12).optional(),
  /** ISO 4217, for example `USD`; the same in all reports of a delegation, and that of its budget. */
  currency: currencySchema.optional(),
};
const modelSchema = z.string().min(1).max(128).optional();

/** The amounts that can be added up. */
export const AMOUNTS = [
  "input_tokens",
  "output_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "cost",
] as const satisfies readonly (keyof typeof amounts)[];
export type Amount = (typeof AMOUNTS)[number];
export type Amounts = { readonly [A in Amount]?: number | undefined };

export const usageReportSchema = z
  .strictObject({
    ...amounts,
    /** The model that was used, up to 128 characters. */
    model: modelSchema,
  })
  .refine(({ cost, currency }) => cost === undefined || currency !== undefined, {
    error: "a cost needs its currency",
    path: ["currency"],
  })
  .refine(({ currency }) => isKnownCurrency(currency), { error: UNKNOWN_CURRENCY, path: ["currency"] });
/** What the lease has used so far. A member that a report leaves out keeps its value. */
export type UsageReport = z.output<typeof usageReportSchema>;

export const usageSumSchema = z.strictObject({
  ...amounts,
  /** False: more may have been used than was reported. */
  complete: z.boolean(),
});
/** What was used together. */
export type UsageSum = z.infer<typeof usageSumSchema>;

/** What the attempts of a delegation have used so far, as an event reports it. */
export const usageSoFarSchema = usageSumSchema.omit({ complete: true });

export const usageSchema = z.strictObject({
  /** The newest attempts for which something was reported, up to 20, oldest first; `complete` if the reply that ended it reported its usage. */
  attempts: z.array(
    usageSumSchema.extend({
      /** The attempt, counted from 1. */
      attempt: z.int().min(1),
      /** The model that was used; absent: not reported. */
      model: modelSchema,
    }),
  ),
  /** Of all attempts; `complete` if each attempt is. */
  total: usageSumSchema,
});
/** What the attempts of a delegation have used, as far as their workers reported it. */
export type Usage = z.infer<typeof usageSchema>;
