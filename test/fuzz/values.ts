/**
 * Values that fit a JSON Schema, for fast-check. `{id}`, `{lease}` and `{interrupt}` stand for ids that exist when
 * the request is sent. Limit: supports what the APIs' schemas use; no value makes a request wait, and URLs are
 * unreachable.
 */
import * as fc from "fast-check";
import { z } from "zod";
import { customAsObject } from "../../src/schema/custom-as-object.ts";

const schemaSchema = z.looseObject({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  enum: z.array(z.unknown()).optional(),
  anyOf: z.array(z.unknown()).optional(),
  oneOf: z.array(z.unknown()).optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  required: z.array(z.string()).optional(),
  items: z.unknown().optional(),
  format: z.string().optional(),
  pattern: z.string().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  minItems: z.number().optional(),
  maxItems: z.number().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  exclusiveMinimum: z.number().optional(),
});
type Schema = z.infer<typeof schemaSchema>;

const URLS = [
  "https://example.invalid/hook",
  "http://127.0.0.1:1/",
  "http://[::1]:1/",
  "file:///etc/passwd",
  "//x",
];
/** By member: chosen most of the time, so that requests pass the validation. */
const USUAL: Readonly<Record<string, readonly string[]>> = {
  id: ["{id}"],
  delegation_id: ["{id}"],
  taskId: ["{id}"],
  parent_id: ["{id}"],
  lease_id: ["{lease}"],
  interrupt_id: ["{interrupt}"],
  agent: ["scout"],
  target: ["scout"],
};
/** By member, always chosen: no request may wait. */
const FIXED: Readonly<Record<string, unknown>> = {
  wait_seconds: 0,
  returnImmediately: true,
  blocking: false,
};
/** JSON Schemas of questions: random JSON is hardly ever one, and no answer would be checked. */
const SCHEMAS = [
  true,
  { type: "string" },
  { type: "object", properties: { a: { type: "integer" } }, required: ["a"] },
  { $defs: { list: { items: { $ref: "#/$defs/list" } } }, anyOf: [{ $ref: "#/$defs/list" }, { const: 1 }] },
  { $ref: "#" },
  { pattern: "^(a+)+$" },
];
const ALWAYS = new Set([...Object.keys(FIXED), "configuration", "next"]);

const words = fc.string({ unit: fc.constantFrom("a", "Z", "0", " ", "-", "é", "😀", "\n", '"', "\\") });

function textOf({ format, pattern, minLength = 0, maxLength = 40 }: Schema): fc.Arbitrary<string> {
  if (format === "date-time") {
    return fc
      .date({ min: new Date("2026-01-01"), max: new Date("2031-01-01"), noInvalidDate: true })
      .map((date) => date.toISOString());
  }
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern), { size: "-1" });
  return fc.string({
    unit: "grapheme",
    minLength,
    maxLength: Math.min(Math.max(maxLength, minLength), minLength + 20),
  });
}

function numberOf({ type, minimum, maximum, exclusiveMinimum }: Schema): fc.Arbitrary<number> {
  const min = Math.ceil(Math.max(minimum ?? (exclusiveMinimum ?? -1_000_001) + 1, -1_000_000));
  const max = Math.max(min, Math.floor(Math.min(maximum ?? 1_000_000, 1_000_000)));
  const whole = fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max));
  return type === "integer" ? whole : fc.oneof(whole, fc.double({ min, max, noNaN: true }));
}

function objectOf({ properties = {}, required = [] }: Schema, depth: number): fc.Arbitrary<unknown> {
  const names = Object.keys(properties);
  if (names.length === 0)
    return fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 });
  const members = Object.fromEntries(names.map((name) => [name, toValue(properties[name], name, depth + 1)]));
  return fc.record(members, {
    requiredKeys: names.filter((name) => required.includes(name) || ALWAYS.has(name)),
  });
}

/** `name` is the name of the member. */
export function toValue(given: unknown, name = "", depth = 0): fc.Arbitrary<unknown> {
  if (Object.hasOwn(FIXED, name)) return fc.constant(FIXED[name]);
  if (name === "schema") return fc.oneof(fc.constantFrom<unknown>(...SCHEMAS), fc.jsonValue());
  if (/(?:^|_)url$/i.test(name)) return fc.constantFrom(...URLS);
  const schema = schemaSchema.parse(given === true ? {} : given);
  const usual = Object.hasOwn(USUAL, name) ? USUAL[name] : undefined;
  const plain = plainOf(schema, depth);
  return usual
    ? fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: plain })
    : plain;
}

function plainOf(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if ("const" in schema) return fc.constant(schema.const);
  const options = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(schema.type))
    return fc.oneof(...schema.type.map((type) => plainOf({ ...schema, type }, depth)));
  if (options) return fc.oneof(...options.map((one) => toValue(one, "", depth)));
  switch (schema.type) {
    case "string":
      return textOf(schema);
    case "integer":
    case "number":
      return numberOf(schema);
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array": {
      const { minItems = 0, maxItems = 3 } = schema;
      return fc.array(toValue(schema.items ?? {}, "", depth + 1), {
        minLength: minItems,
        maxLength: Math.max(minItems, Math.min(maxItems, depth > 3 ? 1 : 3)),
      });
    }
    case "object":
      return objectOf(schema, depth);
    default:
      return fc.oneof(words, fc.jsonValue({ maxDepth: 2 }));
  }
}

export const valuesOf = (schema: z.ZodType, name = ""): fc.Arbitrary<unknown> =>
  toValue(z.toJSONSchema(schema, { io: "input", unrepresentable: customAsObject }), name);
