/**
 * The keywords of JSON Schema 2020-12 that the schema of a question may have, and the form of each. Limit: keywords that
 * are not enforced are refused if they restrict an answer; annotations and unknown keywords are ignored, as the
 * specification says.
 */

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

export type Form =
  | "schema"
  /** A list of schemas. */
  | "schemas"
  /** Schemas by name. */
  | "schema_map"
  | "number"
  | "positive"
  /** A whole number from 0. */
  | "count"
  | "boolean"
  | "type"
  | "list"
  | "any"
  /** A list of different strings. */
  | "names"
  /** Lists of names, by name. */
  | "names_map"
  | "reference";

const FORMS: Readonly<Record<string, Form>> = {
  $ref: "reference",
  $defs: "schema_map",
  // Superseded by `$defs`, but still part of the meta-schema.
  definitions: "schema_map",
  allOf: "schemas",
  anyOf: "schemas",
  oneOf: "schemas",
  not: "schema",
  if: "schema",
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: "schema",
  else: "schema",
  dependentSchemas: "schema_map",
  prefixItems: "schemas",
  items: "schema",
  contains: "schema",
  properties: "schema_map",
  additionalProperties: "schema",
  propertyNames: "schema",
  type: "type",
  enum: "list",
  const: "any",
  multipleOf: "positive",
  maximum: "number",
  exclusiveMaximum: "number",
  minimum: "number",
  exclusiveMinimum: "number",
  maxLength: "count",
  minLength: "count",
  maxItems: "count",
  minItems: "count",
  uniqueItems: "boolean",
  maxContains: "count",
  minContains: "count",
  maxProperties: "count",
  minProperties: "count",
  required: "names",
  dependentRequired: "names_map",
};

const NO_PATTERN = "not supported, because a pattern can take unbounded time; check it in the agent";
const ONLY_REF = "not supported; refer to subschemas by $ref and a JSON Pointer";
const UNSUPPORTED = "not supported; use additionalProperties or items";

const REFUSED: Readonly<Record<string, string>> = {
  pattern: NO_PATTERN,
  patternProperties: NO_PATTERN,
  unevaluatedItems: UNSUPPORTED,
  unevaluatedProperties: UNSUPPORTED,
  $anchor: ONLY_REF,
  $dynamicRef: ONLY_REF,
  $dynamicAnchor: ONLY_REF,
  $recursiveRef: ONLY_REF,
  $recursiveAnchor: ONLY_REF,
  $vocabulary: "not supported",
  // Whole texts, because a bundler cannot drop a table with parts that it has to put together.
  additionalItems: "not part of JSON Schema 2020-12; use prefixItems and items",
  dependencies: "not part of JSON Schema 2020-12; use dependentRequired or dependentSchemas",
};

const lookUp = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** The form of an enforced keyword; undefined for any other. */
export const formOf = (keyword: string): Form | undefined => lookUp(FORMS, keyword);

/** Why a keyword that is not enforced is refused; undefined for an annotation. `depth` is 0 at the root of the schema. */
export function whyRefused(keyword: string, value: unknown, depth: number): string | undefined {
  if (keyword === "$schema" && value !== DIALECT && value !== `${DIALECT}#`) {
    return `must be ${DIALECT}, or be omitted`;
  }
  // It would change the meaning of the references below it.
  if (keyword === "$id" && depth > 0) return "only supported at the root; use $defs";
  return lookUp(REFUSED, keyword);
}

export const TYPES = ["null", "boolean", "object", "array", "number", "integer", "string"] as const;
export type Type = (typeof TYPES)[number];
export const isType = (value: unknown): value is Type => TYPES.some((type) => type === value);

export type Members = Readonly<Record<string, unknown>>;
export const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);
