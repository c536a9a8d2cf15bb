/** Rules in the model: which of them answer the question about an action, and how they end. */
import type { Item, ModelAgent, ModelRule } from "./item.ts";
import { countsVote } from "./votes.ts";

/** What a rule says about the action of the walks, `go` with `{at: 1}`, and whether it fits. */
export const RULE_SHAPES = {
  exact: [{ action: "go", arguments: [{ name: "at", equals: 1 }] }, "yes"],
  any: [{ action: "g*", only_these_arguments: false }, "yes"],
  other: [{ action: "goes" }, "no"],
  less: [{ action: "go", arguments: [{ name: "at", maximum: 0 }] }, "no"],
  missing: [{ action: "*", arguments: [{ name: "to", equals: 1 }] }, "no"],
  // It is no path: a denial then leaves it to a person.
  path: [{ action: "go", arguments: [{ name: "at", path_prefix: "/srv" }] }, "unclear"],
} as const;
export type RuleShape = keyof typeof RULE_SHAPES;

export function stateOf({ revoked, uses, maxUses, expiresAt }: ModelRule, now: number): string {
  if (revoked) return "revoked";
  if (maxUses !== null && uses >= maxUses) return "used_up";
  return expiresAt !== null && expiresAt <= now ? "expired" : "active";
}

const isAbout = ({ by }: ModelRule, { delegator }: Item): boolean =>
  by === "operator" || by.startsWith("approver:") || by === delegator;

/**
 * `rules`: one of these answers. `person`: a denial may apply. `none`: no rule does. `hadAny`: there are or were rules that
 * may answer, so what they answered before is looked up.
 */
export function ruledBy(
  rules: readonly ModelRule[],
  agent: Pick<ModelAgent, "votes">,
  item: Item,
  now: number,
) {
  const about = rules.filter((rule) => rule.agent === item.target && isAbout(rule, item));
  const active = about.filter((rule) => stateOf(rule, now) === "active");
  const that = (decision: string, fit: string) =>
    active.filter((rule) => rule.decision === decision && RULE_SHAPES[rule.shape][1] === fit);
  const hadAny = about.length > 0;
  const [denies, unclear] = [that("deny", "yes"), that("deny", "unclear")];
  const approves = that("approve", "yes").filter(({ by }) => countsVote(agent, by, item));
  if (denies.length > 0) return { hadAny, kind: "deny", rules: denies } as const;
  if (unclear.length > 0) return { hadAny, kind: "person", rules: [] } as const;
  if (approves.length > 0) return { hadAny, kind: "approve", rules: approves } as const;
  return { hadAny, kind: "none", rules: [] } as const;
}
