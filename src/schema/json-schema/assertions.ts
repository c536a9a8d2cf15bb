/**
 * The assertions of each keyword of JSON Schema 2020-12. Limit: no reason contains the value, which may be a secret.
 */
import { shownName } from "../text.ts";
import {
  atLeast,
  atMost,
  BOUNDS,
  fitsNone,
  MISSING,
  mustBe,
  mustBeOneOf,
  mustEqual,
  TYPE_NAMES,
} from "../wording.ts";
import { isObject, isType, type Members } from "./keywords.ts";
import type { Assertion, Place, Run } from "./run.ts";

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const membersOf = (value: unknown): Members => (isObject(value) ? value : {});
const within = (place: Place, name: string | number): Place => ({ within: place, name });

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "integer":
      return Number.isInteger(value);
    // 1e400 is read as Infinity, which is stored as null.
    case "number":
      return Number.isFinite(value);
    default:
      return typeof value === type;
  }
}
const typesOf = (type: unknown): readonly unknown[] => (Array.isArray(type) ? type : [type]);
const hasType = (value: unknown, type: unknown): boolean => typesOf(type).some((one) => isOfType(value, one));

/** The largest rounding error of a quotient, in proportion to it. */
const ROUNDING = 2 ** -50;

/** Exact for a whole divisor. Otherwise tolerates the rounding of binary fractions: 19.99 is a multiple of 0.01. */
function isMultiple(value: number, of: number): boolean {
  if (Number.isInteger(of)) return value % of === 0;
  const quotient = value / of;
  if (!Number.isFinite(quotient)) return value % of === 0;
  return Math.abs(quotient - Math.round(quotient)) <= Math.abs(quotient) * ROUNDING;
}

/** An assertion on numbers. */
const numeric =
  (isGood: (value: number, by: number) => boolean, reason: string): Assertion =>
  (run, { by, value, place }) =>
    typeof value !== "number" || isGood(value, Number(by)) || run.refuse(place, `must be ${reason} ${by}`);

/** Two assertions on the size of a value; `sizeOf` returns undefined for a value of another type. */
function sized(
  sizeOf: (run: Run, value: unknown) => number | undefined,
  unit: string,
): readonly [max: Assertion, min: Assertion] {
  return [
    (run, { by, value, place }) => {
      const size = sizeOf(run, value);
      const max = Number(by);
      return size === undefined || size <= max || run.refuse(place, atMost(max, unit));
    },
    (run, { by, value, place }) => {
      const size = sizeOf(run, value);
      const min = Number(by);
      return size === undefined || size >= min || run.refuse(place, atLeast(min, unit));
    },
  ];
}

/** In code points, not in UTF-16 units. */
function lengthOf(run: Run, value: unknown): number | undefined {
  if (typeof value !== "string") return undefined;
  run.spendOn(value);
  let length = 0;
  for (const _character of value) length += 1;
  return length;
}

const [maxLength, minLength] = sized(lengthOf, "character");
const [maxItems, minItems] = sized(
  (_run, value) => (Array.isArray(value) ? value.length : undefined),
  "item",
);
const [maxProperties, minProperties] = sized(
  (run, value) => (isObject(value) ? run.namesOf(value).length : undefined),
  "member",
);

/**
 * If only one alternative allows the type of the value, as with "an object or null", reports why the value does not fit
 * that one.
 */
function refuseAlternatives(
  run: Run,
  alternatives: readonly unknown[],
  value: unknown,
  place: Place,
  name: string,
): boolean {
  const likely = alternatives.filter(
    (one) => !("type" in membersOf(one)) || hasType(value, membersOf(one).type),
  );
  const [only, second] = likely;
  if (only !== undefined && second === undefined && !run.isDone) return run.fits(only, value, place);
  return run.refuse(place, `${fitsNone(alternatives.length)} (${name})`);
}

function refuseMissing(run: Run, names: unknown, value: Members, place: Place, reason: string): boolean {
  return run.all(
    listOf(names),
    (name) => Object.hasOwn(value, String(name)) || run.refuse(within(place, String(name)), reason),
  );
}

/** Whether every member of `by` that has the name of a member of the value is good. */
function presentIn(
  run: Run,
  by: unknown,
  value: Members,
  isGood: (entry: readonly [name: string, one: unknown]) => boolean,
): boolean {
  const known = membersOf(by);
  return run.all(run.namesOf(known), (name) => !Object.hasOwn(value, name) || isGood([name, known[name]]));
}

const ASSERTIONS: Readonly<Record<string, Assertion>> = {
  $ref: (run, { by, value, place }) => run.fits(run.target(String(by)), value, place),
  allOf: (run, { by, value, place }) => run.all(listOf(by), (one) => run.fits(one, value, place)),
  anyOf: (run, { by, value, place }) =>
    listOf(by).some((one) => run.tries(one, value)) ||
    refuseAlternatives(run, listOf(by), value, place, "anyOf"),
  oneOf: (run, { by, value, place }) => {
    const count = listOf(by).filter((one) => run.tries(one, value)).length;
    if (count === 1) return true;
    if (count === 0) return refuseAlternatives(run, listOf(by), value, place, "oneOf");
    return run.refuse(place, `fits ${count} alternatives, and must fit exactly one (oneOf)`);
  },
  not: (run, { by, value, place }) =>
    !run.tries(by, value) || run.refuse(place, "fits what it must not fit (not)"),
  if: (run, { by, schema, value, place }) => {
    const branch = run.tries(by, value) ? "then" : "else";
    return !Object.hasOwn(schema, branch) || run.fits(schema[branch], value, place);
  },
  dependentSchemas: (run, { by, value, place }) =>
    !isObject(value) || presentIn(run, by, value, ([, one]) => run.fits(one, value, place)),
  prefixItems: (run, { by, value, place }) =>
    !Array.isArray(value) ||
    run.all(listOf(by).slice(0, value.length).entries(), ([at, one]) =>
      run.fits(one, value[at], within(place, at)),
    ),
  items: (run, { by, schema, value, place }) => {
    if (!Array.isArray(value)) return true;
    const first = listOf(schema.prefixItems).length;
    return run.all(value.entries(), ([at, item]) => at < first || run.fits(by, item, within(place, at)));
  },
  contains: (run, { by, schema, value, place }) => {
    if (!Array.isArray(value)) return true;
    const { minContains: least = 1, maxContains: most = Number.POSITIVE_INFINITY } = schema;
    const count = value.filter((item) => run.tries(by, item)).length;
    if (count < Number(least))
      return run.refuse(place, `${atLeast(Number(least), "item")} must fit contains`);
    return count <= Number(most) || run.refuse(place, `${atMost(Number(most), "item")} may fit contains`);
  },
  properties: (run, { by, value, place }) =>
    !isObject(value) ||
    presentIn(run, by, value, ([name, one]) => run.fits(one, value[name], within(place, name))),
  additionalProperties: (run, { by, schema, value, place }) => {
    if (!isObject(value)) return true;
    const known = membersOf(schema.properties);
    return run.all(
      run.namesOf(value),
      (name) => Object.hasOwn(known, name) || run.fits(by, value[name], within(place, name)),
    );
  },
  propertyNames: (run, { by, value, place }) =>
    !isObject(value) ||
    run.all(
      run.namesOf(value),
      (name) => run.tries(by, name) || run.refuse(within(place, name), "a member must not have this name"),
    ),
  type: (run, { by, value, place }) =>
    hasType(value, by) ||
    run.refuse(place, () => mustBe(typesOf(by).map((type) => (isType(type) ? TYPE_NAMES[type] : "")))),
  enum: (run, { by, value, place }) =>
    listOf(by).some((one) => run.equals(one, value)) || run.refuse(place, () => mustBeOneOf(listOf(by))),
  const: (run, { by, value, place }) => run.equals(by, value) || run.refuse(place, () => mustEqual(by)),
  multipleOf: numeric(isMultiple, BOUNDS.multipleOf),
  maximum: numeric((value, by) => value <= by, BOUNDS.maximum),
  exclusiveMaximum: numeric((value, by) => value < by, BOUNDS.exclusiveMaximum),
  minimum: numeric((value, by) => value >= by, BOUNDS.minimum),
  exclusiveMinimum: numeric((value, by) => value > by, BOUNDS.exclusiveMinimum),
  maxLength,
  minLength,
  maxItems,
  minItems,
  maxProperties,
  minProperties,
  uniqueItems: (run, { by, value, place }) => {
    if (by !== true || !Array.isArray(value)) return true;
    const texts = new Set(value.map((item) => run.textOf(item)));
    return texts.size === value.length || run.refuse(place, "two items are equal");
  },
  required: (run, { by, value, place }) => !isObject(value) || refuseMissing(run, by, value, place, MISSING),
  dependentRequired: (run, { by, value, place }) =>
    !isObject(value) ||
    presentIn(run, by, value, ([name, names]) =>
      refuseMissing(run, names, value, place, `${MISSING}, required beside ${shownName(name)}`),
    ),
};

export const assertions: ReadonlyMap<string, Assertion> = new Map(Object.entries(ASSERTIONS));
