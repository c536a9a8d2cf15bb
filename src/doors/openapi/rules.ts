/**
 * The rules over several members, as JSON Schema. Limit: generators of clients use only `oneOf` and `anyOf`, and only if
 * each branch has a type and properties; from branches with `required` alone they make `unknown`. `not` they ignore, so
 * their types allow two members that exclude each other; a validator does not.
 */
import type * as z from "zod";
import { type Rule, ruleOf } from "../../schema/rules.ts";
import type { Schema } from "./types.ts";

export function addRules(zodSchema: z.core.$ZodType, schema: Schema): void {
  const rules = (zodSchema._zod.def.checks ?? []).flatMap((check: object) => ruleOf(check) ?? []);
  const exclusive = rules.find(isExclusive);
  const [needs = []] = rules.flatMap(({ needs: names }) => (names.length > 0 ? [names] : []));
  const branches = needs.map((name) => branch(name, schema));
  if (branches.length > 0) schema[exclusive ? "oneOf" : "anyOf"] = branches;
  const apart = rules.flatMap((rule) => (rule === exclusive ? [] : rule.apart));
  const [first, ...more] = apart.map(([one, other]) => ({ required: [one, other] }));
  if (first) schema.not = more.length === 0 ? first : { anyOf: [first, ...more] };
}

/** Exactly one of its members is given. */
const isExclusive = ({ needs, apart }: Rule): boolean => needs.length === 2 && apart.length === 1;

function branch(name: string, { properties = {} }: Schema): Schema {
  return { type: "object", properties: { [name]: properties[name] ?? {} }, required: [name] };
}
