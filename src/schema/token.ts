/** Bearer tokens and their principals. Limit: the secret appears only in the response that creates it. */
import * as z from "zod";
import { periodBudgetsSchema } from "./budget.ts";
import { instantSchema, principalSchema } from "./values.ts";

/** The token to create. */
export const tokenRequestSchema = z.strictObject({
  /** Whom the token acts for; not `operator`, whose token is configured. */
  principal: principalSchema.refine((principal) => principal !== "operator", {
    error: "the operator token is configured (ERRAND_OPERATOR_TOKEN), not created",
  }),
  /** How long it is valid, up to 10 years. Default: without an end. */
  expires_in_seconds: z.number().positive().max(315_360_000).optional(),
  /** The highest priority that it may delegate with, 0 to 9. Default: 9. */
  max_priority: z.int().min(0).max(9).optional(),
  /**
   * What the work that its principal delegates may use by `day` and by `month`, UTC, with all that agents delegate under it.
   * When one is used up, new work is refused with `budget_exhausted`. Default: as much as it likes.
   */
  budgets: periodBudgetsSchema.optional(),
});
export type TokenRequest = z.output<typeof tokenRequestSchema>;

export const tokenSchema = z.strictObject({
  /** Identifies the token. */
  id: z.string(),
  /** Whom it acts for. */
  principal: principalSchema,
  /** When it was created. */
  created_at: instantSchema,
  /** When it ends; null: never. */
  expires_at: instantSchema.nullable(),
  /** The highest priority that it may delegate with; absent: any. */
  max_priority: z.int().optional(),
  /** What the work that its principal delegates may use by day and by month; absent: as much as it likes. */
  budgets: periodBudgetsSchema.optional(),
});
/** A token, without its secret. */
export type TokenInfo = z.infer<typeof tokenSchema>;
/** What limits the work that is delegated with a token. */
export type TokenLimits = Readonly<Pick<TokenInfo, "max_priority" | "budgets">>;
/** A token with its secret. */
export const newTokenSchema = tokenSchema.extend({
  /** The secret: send it as a bearer token. Shown only once. */
  token: z.string(),
});

/** All tokens. */
export const tokenListSchema = z.strictObject({
  /** The tokens, without their secrets. */
  tokens: z.array(tokenSchema),
});
