/** How risky an agent's actions are, by their names, for the people who answer. Limit: the broker does not act on it. */
import * as z from "zod";
import { actionPatternSchema, matchesAction } from "./action-pattern.ts";

/** How risky an action is. */
export const riskSchema = z.enum(["low", "medium", "high"]);
export type Risk = z.infer<typeof riskSchema>;

/** How risky the actions with some names are. */
export const riskRuleSchema = z.strictObject({
  /** The name of an action; one that ends in `*` matches every name that begins like it. */
  action: actionPatternSchema,
  /** How risky these actions are. */
  risk: riskSchema,
});
export type RiskRule = z.infer<typeof riskRuleSchema>;

/**
 * The risk of an action by an agent's `risks`: the highest of the rules that match, or null.
 *
 * @example
 * ```ts
 * const { risks } = await admin.getAgent("scout");
 * riskOf(risks, "deploy"); // "high"
 * ```
 */
export function riskOf(rules: readonly RiskRule[], action: string): Risk | null {
  const matching = rules.filter((rule) => matchesAction(rule.action, action)).map(({ risk }) => risk);
  return riskSchema.options.findLast((risk) => matching.includes(risk)) ?? null;
}
