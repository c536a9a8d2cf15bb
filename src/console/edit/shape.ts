/**
 * What a form can take from a JSON Schema: the kind of the field, its texts and its members. An agent wrote the
 * schema, so nothing in it is trusted. What a form cannot express is left to the check before an answer is sent.
 */
import * as z from "zod";
import { isObject, type Members } from "../../schema/json-schema/keywords.ts";

/** The kinds of fields that a schema can ask for. */
export type ShapeKind = "text" | "number" | "yes" | "choice" | "choices" | "list" | "group";

export interface Shape {
  /** Null: the value decides. */
  readonly kind: ShapeKind | null;
  readonly title: string | undefined;
  readonly description: string;
  /** The values of an enum, or of a list of enum values. */
  readonly choices: readonly unknown[];
  readonly isInteger: boolean;
  readonly isSecret: boolean;
  readonly format: string;
  /** The limits of a number. */
  readonly min: number | undefined;
  readonly max: number | undefined;
  /** The limits in words, such as "1 to 9". */
  readonly bounds: readonly string[];
  readonly initial: unknown;
  /** The schemas of an object's members. */
  readonly properties: Members;
  readonly required: readonly unknown[];
  /** The schema of a list's items. */
  readonly items: unknown;
}

const limit = z.number().optional().catch(undefined);
const list = z.array(z.unknown()).optional().catch(undefined);
const text = z.string().optional().catch(undefined);
const anything = z.unknown().optional();
const schemaSchema = z.object({
  type: anything,
  title: text,
  description: text,
  format: text,
  writeOnly: anything,
  enum: list,
  required: list,
  properties: anything,
  items: anything,
  default: anything,
  minimum: limit,
  maximum: limit,
  minLength: limit,
  maxLength: limit,
  minItems: limit,
  maxItems: limit,
});
type Schema = z.infer<typeof schemaSchema>;

/** With one of these keywords, a value has other rules than a form shows. */
const COMPLEX = ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "prefixItems"];

const isScalar = (value: unknown): boolean => typeof value !== "object";

export function shapeOf(schema: unknown): Shape {
  const own = isObject(schema) ? withoutNull(schema) : {};
  const read = schemaSchema.safeParse(own).data ?? schemaSchema.parse({});
  const { title, description = "", format = "", enum: values, required = [], items } = read;
  const properties = isObject(read.properties) ? read.properties : {};
  const type = typeof read.type === "string" ? read.type : "";
  const itemChoices = isObject(items) && Array.isArray(items.enum) ? items.enum : [];
  const choices = (values ?? itemChoices).filter(isScalar);
  return {
    kind: COMPLEX.some((key) => Object.hasOwn(own, key)) ? null : kindOf(type, read, choices, properties),
    title,
    description,
    choices,
    isInteger: type === "integer",
    isSecret: format === "password" || read.writeOnly === true,
    format,
    min: read.minimum,
    max: read.maximum,
    bounds: boundsOf(type, read),
    initial: read.default,
    properties,
    required,
    items,
  };
}

/** "A text or null" is asked for as a text. */
function withoutNull(schema: Members): Members {
  const { type, anyOf, ...rest } = schema;
  const isOther = (one: unknown) => one !== "null" && !(isObject(one) && one.type === "null");
  const [only, second] = (Array.isArray(type) ? type : Array.isArray(anyOf) ? anyOf : []).filter(isOther);
  if (only === undefined || second !== undefined) return schema;
  return isObject(only) ? { ...rest, ...only } : { ...rest, type: only };
}

function kindOf(
  type: string,
  { enum: values, items }: Schema,
  choices: readonly unknown[],
  properties: Members,
): ShapeKind | null {
  if (values) return choices.length > 0 ? "choice" : null;
  switch (type) {
    case "string":
      return "text";
    case "number":
    case "integer":
      return "number";
    case "boolean":
      return "yes";
    case "array":
      if (choices.length > 0) return "choices";
      return isObject(items) ? "list" : null;
    default:
      return ["object", ""].includes(type) && Object.keys(properties).length > 0 ? "group" : null;
  }
}

function boundsOf(
  type: string,
  { minimum, maximum, minLength, maxLength, minItems, maxItems }: Schema,
): string[] {
  if (type === "number" || type === "integer") return rangeOf(minimum, maximum, "");
  if (type === "string") return rangeOf(minLength, maxLength, " characters");
  return type === "array" ? rangeOf(minItems, maxItems, " items") : [];
}

function rangeOf(min: number | undefined, max: number | undefined, unit: string): string[] {
  if (min !== undefined && max !== undefined) return [`${min} to ${max}${unit}`];
  if (min !== undefined) return [`at least ${min}${unit}`];
  return max === undefined ? [] : [`at most ${max}${unit}`];
}

/** Whether a field of this kind can show the value. */
export function fits(value: unknown, { kind, choices }: Shape): boolean {
  switch (kind) {
    case "text":
      return typeof value === "string";
    case "number":
      return typeof value === "number";
    case "yes":
      return typeof value === "boolean";
    case "choice":
      return choices.includes(value);
    case "choices":
      return (
        Array.isArray(value) &&
        value.every((one) => choices.includes(one)) &&
        new Set(value).size === value.length
      );
    case "list":
      return Array.isArray(value);
    case "group":
      return isObject(value);
    case null:
      return true;
  }
}

/** What a value has before anybody fills in a form: defaults, and what is never left out. Undefined: nothing. */
export function startOf(schema: unknown, isRequired = true): unknown {
  const shape = shapeOf(schema);
  const { kind, initial, properties, required } = shape;
  if (initial !== undefined && kind !== null && fits(initial, shape)) return initial;
  if (kind === "yes") return false;
  if (!isRequired) return undefined;
  if (kind === "choices" || kind === "list") return [];
  if (kind !== "group") return undefined;
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, member]) => {
      const start = startOf(member, required.includes(name));
      return start === undefined ? [] : [[name, start]];
    }),
  );
}

/** Whether the schema hides what is at the path, or a part of it. */
export function isSecretAt(schema: unknown, path: readonly (string | number)[]): boolean {
  const { isSecret, properties, items } = shapeOf(schema);
  if (isSecret) return true;
  const [name, ...rest] = path;
  if (typeof name === "string") return Object.hasOwn(properties, name) && isSecretAt(properties[name], rest);
  const inner = name === undefined ? [...Object.values(properties), items] : [items];
  return inner.some((one) => isObject(one) && isSecretAt(one, rest));
}

/** Whether a schema names a secret anywhere, also where no form shows it. */
export const mayHoldSecrets = (schema: unknown): boolean =>
  /"writeOnly":true|"format":"password"/.test(JSON.stringify(schema ?? null));
