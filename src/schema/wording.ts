/** The words with which a value is refused, whichever schema refuses it: one of zod, or a JSON Schema of a stranger. */
import { truncate } from "./text.ts";

export const MISSING = "missing";

/** The types of JSON. */
export const TYPE_NAMES = {
  null: "null",
  boolean: "true or false",
  object: "an object",
  array: "a list",
  number: "a number",
  integer: "a whole number",
  string: "a string",
} as const;

export const mustBe = (types: readonly string[]): string => `must be ${types.join(" or ")}`;

/** `must be a string, not null`. Shows no value: it may be a secret. */
export function wrongType(types: readonly string[], value: unknown): string {
  if (value === undefined) return MISSING;
  const name = typeNameOf(value);
  // 1.5 is a number as well, and a Date an object.
  const isNear = types.includes(name) || (types.includes(TYPE_NAMES.integer) && name === TYPE_NAMES.number);
  return isNear ? mustBe(types) : `${mustBe(types)}, not ${name}`;
}

function typeNameOf(value: unknown): string {
  if (value === null) return TYPE_NAMES.null;
  if (Array.isArray(value)) return TYPE_NAMES.array;
  const type = typeof value;
  return type === "string" || type === "number" || type === "boolean" || type === "object"
    ? TYPE_NAMES[type]
    : `a ${type}`;
}

export const counted = (count: number, unit: string): string => `${count} ${unit}${count === 1 ? "" : "s"}`;
export const atMost = (max: number, unit: string): string => `at most ${counted(max, unit)}`;
export const atLeast = (min: number, unit: string): string => `at least ${counted(min, unit)}`;

/** What a bound of a number is called. */
export const BOUNDS = {
  maximum: "at most",
  exclusiveMaximum: "less than",
  minimum: "at least",
  exclusiveMinimum: "greater than",
  multipleOf: "a multiple of",
} as const;

export const mustBeOneOf = (values: readonly unknown[]): string => `must be one of ${shownValues(values)}`;
export const mustEqual = (value: unknown): string => `must be ${shownValues([value])}`;
export const fitsNone = (count: number): string => `fits none of the ${count} alternatives`;

const MAX_SHOWN = 200;
/** The values that a schema allows, as part of a reason. */
export const shownValues = (values: readonly unknown[]): string => {
  const text = values
    .slice(0, MAX_SHOWN)
    .map((one) => JSON.stringify(one))
    .join(", ");
  return text.length > MAX_SHOWN ? `${truncate(text, MAX_SHOWN)}…` : text;
};
