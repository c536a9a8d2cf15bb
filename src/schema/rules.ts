/** Rules over several members of an object, as checks of zod. The API description shows the members of each. */
import * as z from "zod";

export interface Rule {
  /** One of these must be given; empty: none must. */
  readonly needs: readonly string[];
  /** Pairs that must not be given together. */
  readonly apart: readonly (readonly [string, string])[];
}

const RULES = new WeakMap<object, Rule>();

/** The rule of a check; undefined for a check that has none. */
export const ruleOf = (check: object): Rule | undefined => RULES.get(check);

type Body<K extends string> = { readonly [P in K]?: unknown };

/** A check that enforces the rule. `error` says at which member, and why. */
export function withRule<K extends string>(
  rule: Rule,
  isMet: (body: Body<K>) => boolean,
  error: { readonly error: string; readonly path: string[] },
): z.core.$ZodCheck<Body<K>> {
  const check = z.refine<Body<K>>(isMet, error);
  RULES.set(check, rule);
  return check;
}

export const exactlyOne = <K extends string>(first: K, second: K): z.core.$ZodCheck<Body<K>> =>
  withRule<K>(
    { needs: [first, second], apart: [[first, second]] },
    (body) => (body[first] === undefined) !== (body[second] === undefined),
    { error: `give exactly one of ${first} and ${second}`, path: [first] },
  );

export const atMostOne = <K extends string>(first: K, second: K): z.core.$ZodCheck<Body<K>> =>
  withRule<K>(
    { needs: [], apart: [[first, second]] },
    (body) => body[first] === undefined || body[second] === undefined,
    { error: `give at most one of ${first} and ${second}`, path: [first] },
  );
