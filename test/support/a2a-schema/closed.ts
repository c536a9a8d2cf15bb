/**
 * Builds closed JSON Schemas (no additional properties) from tables of messages. A type is a name, with `[]` for a list or
 * `{}` for a map, then `!` if it is required, or `+` if it is required and not empty. `'x'` is a constant.
 */
import { Ajv, type ValidateFunction } from "ajv";

export interface Definition {
  readonly fields: Readonly<Record<string, string>>;
  /** Exactly one of these is present. */
  readonly oneOf?: readonly string[];
}

type Json = Readonly<Record<string, unknown>>;
export type Definitions = Readonly<Record<string, Definition | Json>>;

const INSTANT = "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,9})?Z$";
const BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";
const BASE: Readonly<Record<string, Json>> = {
  string: { type: "string" },
  boolean: { type: "boolean" },
  int: { type: "integer" },
  id: { type: ["string", "integer", "null"] },
  bytes: { type: "string", pattern: BASE64 },
  time: { type: "string", pattern: INSTANT },
  /** An object with members of anybody's choice. */
  struct: { type: "object" },
  value: {},
};

function typeOf(type: string): Json {
  const text = type.replace(/[!+]$/, "");
  const filled = type.endsWith("+");
  if (text.startsWith("'")) return { const: text.slice(1, -1) };
  if (text.endsWith("[]")) {
    return { type: "array", items: typeOf(text.slice(0, -2)), ...(filled && { minItems: 1 }) };
  }
  if (text.endsWith("{}")) return { type: "object", additionalProperties: typeOf(text.slice(0, -2)) };
  const base = Object.hasOwn(BASE, text) ? BASE[text] : undefined;
  if (!base) return { $ref: `#/definitions/${text}` };
  return filled ? { ...base, minLength: 1 } : base;
}

export const isTable = (one: Definition | Json): one is Definition => "fields" in one;

function toSchema(one: Definition | Json): Json {
  if (!isTable(one)) return one;
  const { fields, oneOf } = one;
  return {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries(Object.entries(fields).map(([name, type]) => [name, typeOf(type)])),
    required: Object.keys(fields).filter((name) => /[!+]$/.test(fields[name] ?? "")),
    ...(oneOf && { oneOf: oneOf.map((name) => ({ required: [name] })) }),
  };
}

/** Validators by type, compiled on first use. */
export function closed(definitions: Definitions): (type: string) => ValidateFunction {
  const schemas = Object.fromEntries(Object.entries(definitions).map(([name, one]) => [name, toSchema(one)]));
  const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, strictRequired: false, strictTuples: false });
  const compiled = new Map<string, ValidateFunction>();
  return (type) => {
    const known = compiled.get(type);
    if (known) return known;
    const made = ajv.compile({ ...typeOf(type), definitions: schemas });
    compiled.set(type, made);
    return made;
  };
}
