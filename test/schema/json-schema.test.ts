/** The JSON Schemas of questions: agreement with ajv, the schemas that are refused, and bounded time for hostile ones. */
import { Ajv2020 } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { schemaIssues } from "../../src/schema/json-schema/check-schema.ts";
import { validate } from "../../src/schema/json-schema/validate.ts";

const isValid = (schema: unknown, value: unknown): boolean => {
  const { issues, tooComplex } = validate(schema, value);
  expect(tooComplex).toBe(false);
  return issues.length === 0;
};

const NAMES = ["a", "b", "c"];
const values = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.constantFrom<unknown>(null, true, false, 0, 1, 2, 3.5, -1, "", "a", "ab", "😀b", [], {}),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie("value"), { maxKeys: 3 }),
  ),
})).value;

const count = fc.integer({ min: 0, max: 3 });
const limit = fc.integer({ min: -2, max: 4 });
const names = fc.uniqueArray(fc.constantFrom(...NAMES), { maxLength: 2 });
const types = fc.constantFrom("null", "boolean", "object", "array", "number", "integer", "string");
const schemas = fc.letrec<{ schema: unknown }>((tie) => {
  const schema = tie("schema");
  const list = fc.array(schema, { minLength: 1, maxLength: 3 });
  const map = fc.dictionary(fc.constantFrom(...NAMES), schema, { maxKeys: 3 });
  return {
    schema: fc.oneof(
      { maxDepth: 3, depthSize: "small" },
      fc.oneof({ weight: 9, arbitrary: fc.record({ type: types }) }, fc.boolean()),
      fc.record({ enum: fc.array(values, { minLength: 1, maxLength: 3 }) }),
      fc.record({ const: values }),
      fc.record({ type: fc.uniqueArray(types, { minLength: 1, maxLength: 2 }) }),
      fc.record(
        { multipleOf: fc.constantFrom(1, 2, 0.5), maximum: limit, minimum: limit, exclusiveMaximum: limit },
        { requiredKeys: [] },
      ),
      fc.record({ maxLength: count, minLength: count, exclusiveMinimum: limit }, { requiredKeys: [] }),
      fc.record({ items: schema, prefixItems: list, minItems: count }, { requiredKeys: [] }),
      // Not with prefixItems: ajv then accepts an empty list that must contain something.
      fc.record(
        {
          items: schema,
          contains: schema,
          minContains: count,
          maxContains: count,
          minItems: count,
          maxItems: count,
          uniqueItems: fc.boolean(),
        },
        { requiredKeys: [] },
      ),
      fc.record(
        {
          properties: map,
          additionalProperties: schema,
          propertyNames: schema,
          required: names,
          dependentRequired: fc.dictionary(fc.constantFrom(...NAMES), names, { maxKeys: 2 }),
          dependentSchemas: map,
          minProperties: count,
          maxProperties: count,
        },
        { requiredKeys: [] },
      ),
      fc.record(
        {
          allOf: list,
          anyOf: list,
          oneOf: list,
          not: schema,
          if: schema,
          else: schema,
          $ref: fc.constant("#/$defs/x"),
        },
        { requiredKeys: [] },
      ),
    ),
  };
}).schema;

/** Undefined if ajv's own code is broken: `contains` inside `oneOf`, beside `not: true`, reads an undeclared variable. */
function verdict(validate: (value: unknown) => unknown, value: unknown): boolean | undefined {
  try {
    return validate(value) === true;
  } catch (error) {
    if (error instanceof ReferenceError) return undefined;
    throw error;
  }
}

test("ajv and this validator agree", { timeout: 60_000 }, async () => {
  const ajv = new Ajv2020({ strict: false, validateSchema: false, logger: false });
  let fits = 0;
  let misfits = 0;
  const agree = (inner: unknown, some: readonly unknown[]) => {
    const schema = { $defs: { x: { type: ["string", "array"] } }, allOf: [inner] };
    // As on the wire: without undefined members and with the usual prototype.
    const plain: unknown = JSON.parse(JSON.stringify(schema));
    expect(schemaIssues(plain)).toEqual([]);
    const expected = ajv.compile(JSON.parse(JSON.stringify(schema)));
    for (const value of JSON.parse(JSON.stringify(some))) {
      const isRight = verdict(expected, value);
      if (isRight === undefined) continue;
      if (isRight) fits += 1;
      else misfits += 1;
      expect([isValid(plain, value), plain, value]).toEqual([isRight, plain, value]);
    }
  };
  const some = fc.array(values, { minLength: 8, maxLength: 8 });
  await fc.assert(fc.property(schemas, some, agree), { numRuns: 200 });
  expect(Math.min(fits, misfits)).toBeGreaterThan(100);
});

test("a value and its schema share a document; a prototype has no members", () => {
  const tree = {
    type: "object",
    properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#" } } },
    required: ["name"],
    additionalProperties: false,
  };
  expect(isValid(tree, { name: "a", children: [{ name: "b", children: [] }] })).toBe(true);
  expect(validate(tree, { name: "a", children: [{ name: "b", size: 1 }, {}] }).issues).toEqual([
    { path: "children.0.size", reason: "not allowed" },
    { path: "children.1.name", reason: "missing" },
  ]);
  expect(isValid({ required: ["constructor"] }, {})).toBe(false);
  expect(isValid({ properties: { toString: false } }, {})).toBe(true);
  expect(schemaIssues({ constructor: 1, toString: {} })).toEqual([]);
  const escaped = { $defs: { "a/b~c%d": { const: 1 } }, $ref: "#/$defs/a~1b~0c%25d" };
  expect([schemaIssues(escaped), isValid(escaped, 1), isValid(escaped, 2)]).toEqual([[], true, false]);
});

test.each([
  ["a multiple of cents", { multipleOf: 0.01 }, 19.99, true],
  ["not a multiple of cents", { multipleOf: 0.01 }, 19.995, false],
  ["an overflow", { multipleOf: 0.123456789 }, 1e308, false],
  ["an overflow that divides", { multipleOf: 0.5 }, 1e308, true],
  ["a large number that is not whole", { multipleOf: 1 }, 2 ** 49 + 0.5, false],
  ["a large number that does not divide", { multipleOf: 7 }, 2 ** 52 + 1, false],
  ["a large number that divides", { multipleOf: 7 }, 2 ** 52 - 2, true],
  ["a number that JSON cannot store", { type: "number" }, JSON.parse("1e400"), false],
  ["characters, not units", { maxLength: 2 }, "😀😀", true],
  ["1 is 1.0", { enum: [1.0] }, 1, true],
  [
    "equal objects",
    { uniqueItems: true },
    [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ],
    false,
  ],
  ["false is not 0", { uniqueItems: true }, [0, false], true],
])("%s", (_name, schema, value, expected) => {
  expect(isValid(schema, value)).toBe(expected);
});

test("every issue is named, up to 50, and none repeats the value", () => {
  const schema = {
    properties: {
      size: { type: ["integer", "null"], minimum: 1 },
      color: { enum: ["red", "blue"] },
      code: { anyOf: [{ type: "string", minLength: 3 }, { type: "null" }] },
    },
    required: ["name"],
  };
  const { issues } = validate(schema, { size: 0.5, color: "hunter2", code: "ab" });
  expect(issues).toEqual([
    { path: "size", reason: "must be a whole number or null" },
    { path: "size", reason: "must be at least 1" },
    { path: "color", reason: 'must be one of "red", "blue"' },
    { path: "code", reason: "at least 3 characters" },
    { path: "name", reason: "missing" },
  ]);
  const many = validate(
    { items: { type: "string" } },
    Array.from({ length: 1_000 }, () => 1),
  ).issues;
  expect([many.length, many[49]]).toEqual([50, { path: "49", reason: "must be a string" }]);
});

describe("a schema is refused", () => {
  test.each([
    ["a list", [], "", "must be a JSON Schema"],
    ["null", null, "", "must be a JSON Schema"],
    ["a pattern", { properties: { a: { pattern: "^(a+)+$" } } }, "properties.a.pattern", "not supported"],
    ["pattern properties", { patternProperties: { a: true } }, "patternProperties", "not supported"],
    ["unevaluated properties", { unevaluatedProperties: false }, "unevaluatedProperties", "not supported"],
    ["a remote reference", { $ref: "https://example.com/s" }, "$ref", "must refer to this schema itself"],
    ["an anchor", { $anchor: "x" }, "$anchor", "not supported"],
    ["a reference to nothing", { $ref: "#/$defs/x" }, "$ref", "refers to no subschema"],
    ["a reference to no schema", { $ref: "#/enum/0", enum: [{}] }, "$ref", "refers to no subschema"],
    ["a malformed reference", { $ref: "#/%E0%A4%A" }, "$ref", "must refer to this schema itself"],
    ["another dialect", { $schema: "http://json-schema.org/draft-07/schema#" }, "$schema", "must be https:"],
    ["an inner id", { items: { $id: "x" } }, "items.$id", "only supported at the root"],
    ["items of draft 7", { items: [{}] }, "items", "must be a JSON Schema"],
    ["dependencies of draft 7", { dependencies: {} }, "dependencies", "not part of JSON Schema 2020-12"],
    ["an unknown type", { type: "text" }, "type", "must be one or several of"],
    ["a negative count", { minLength: -1 }, "minLength", "at least 0"],
    ["a bound of draft 4", { exclusiveMaximum: true }, "exclusiveMaximum", "must be a number"],
    ["a bound that JSON cannot store", { maximum: JSON.parse("1e400") }, "maximum", "must be a number"],
    ["a divisor that JSON cannot store", { multipleOf: JSON.parse("1e400") }, "multipleOf", "greater than 0"],
    ["no alternatives", { anyOf: [] }, "anyOf", "at least one schema"],
    ["names that repeat", { required: ["a", "a"] }, "required", "different strings"],
    ["a loop", { $ref: "#" }, "", "never end"],
    [
      "a larger loop",
      { $defs: { a: { not: { $ref: "#/$defs/b" } }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" },
      "",
      "never end",
    ],
    [
      "references that multiply",
      {
        $defs: Object.fromEntries(
          // Each refers to the next one three times: 3 ** 10 checks of any value.
          Array.from({ length: 10 }, (_, n) => [
            `d${n}`,
            { allOf: Array.from({ length: 3 }, () => (n < 9 ? { $ref: `#/$defs/d${n + 1}` } : {})) },
          ]),
        ),
        $ref: "#/$defs/d0",
      },
      "",
      "multiply too often",
    ],
    ["too many bytes", { enum: ["x".repeat(70_000)] }, "", "at most 65536 bytes"],
  ])("%s", (_name, schema, path, reason) => {
    const [first, second] = schemaIssues(schema);
    expect([first?.path, second]).toEqual([path, undefined]);
    expect(first?.reason).toContain(reason);
  });

  test("nested too deeply", () => {
    let schema: unknown = {};
    for (let depth = 0; depth < 33; depth += 1) schema = { not: schema };
    expect(schemaIssues(schema)).toEqual([
      { path: Array.from({ length: 33 }, () => "not").join("."), reason: "nested deeper than 32 schemas" },
    ]);
  });

  test("with an annotation or an unknown keyword it is not", () => {
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $id: "urn:x",
      title: "T",
      format: "email",
      "x-order": 1,
      default: {},
      definitions: { x: {} },
      properties: { pattern: { $ref: "#/definitions/x" } },
    };
    expect(schemaIssues(schema)).toEqual([]);
  });
});

/** Doubles with each level, so it would take 2^30 steps. */
function bomb(keyword: string): unknown {
  const levels = Array.from({ length: 30 }, (_, at) => {
    const next = { $ref: `#/$defs/d${at + 1}` };
    return [`d${at}`, { [keyword]: [next, next] }] as const;
  });
  return { $defs: { ...Object.fromEntries(levels), d30: { not: { const: 1 } } }, $ref: "#/$defs/d0" };
}

test("a check that would take long is given up", () => {
  const long = Array.from({ length: 300_000 }, (_, at) => at);
  const text = "x".repeat(1_000_000);
  for (const [schema, value] of [
    [bomb("allOf"), "a"],
    [bomb("oneOf"), "a"],
    [bomb("anyOf"), 1],
    [{ if: { type: "string" }, [`${"th"}en`]: { $ref: "#" } }, "a"],
    [{ uniqueItems: true }, long],
    [{ items: { enum: Array.from({ length: 5_000 }, (_, at) => at + 0.5) } }, long],
    [{ allOf: Array.from({ length: 3_000 }, () => ({ minLength: 2_000_000 })) }, text],
    [{ allOf: Array.from({ length: 100 }, () => ({ uniqueItems: true })) }, [{ [text]: 1 }]],
  ]) {
    expect(validate(schema, value)).toEqual({
      issues: [{ path: "", reason: "too large, or too complex, to be checked against the schema" }],
      tooComplex: true,
    });
  }
  expect(schemaIssues(bomb("allOf"))).toMatchObject([
    { path: "", reason: expect.stringContaining("multiply") },
  ]);
});
