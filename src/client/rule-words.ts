/** What a rule says, in words. */
import type { ArgumentConstraint, Rule } from "../schema/rule.ts";

/** `path is /srv/a or below`. */
export function constraintText({ name, pointer, ...tests }: ArgumentConstraint): string {
  const { equals, path_prefix, items_prefix, minimum, maximum, schema } = tests;
  const parts = [
    equals !== undefined && `is ${JSON.stringify(equals)}`,
    path_prefix !== undefined && `is ${path_prefix} or below`,
    items_prefix && `begins with ${JSON.stringify(items_prefix)}`,
    minimum !== undefined && `is at least ${minimum}`,
    maximum !== undefined && `is at most ${maximum}`,
    schema !== undefined && `fits ${JSON.stringify(schema)}`,
  ];
  return `${name ?? pointer} ${parts.filter(Boolean).join(" and ")}`;
}

/** `none`, `any`, or what they must be. */
export function argumentsText(rule: Pick<Rule, "arguments" | "only_these_arguments">): string {
  if (rule.arguments.length > 0) return rule.arguments.map(constraintText).join(", ");
  return rule.only_these_arguments ? "none" : "any";
}

/** `3`, or `3 of 10`. */
export const usesText = ({ uses, max_uses }: Pick<Rule, "uses" | "max_uses">): string =>
  max_uses === null ? String(uses) : `${uses} of ${max_uses}`;
