/** The parts of the form for arguments and answers that need no browser. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readNumber } from "../../src/console/edit/exact-number.ts";
import { blankOf, type Field, fieldsOf } from "../../src/console/edit/fields.ts";
import { lineDiff } from "../../src/console/edit/line-diff.ts";
import { fromField, inField } from "../../src/console/edit/line-ends.ts";
import { setAt } from "../../src/console/edit/set-at.ts";
import { isSecretAt, startOf } from "../../src/console/edit/shape.ts";
import { changesOf } from "../../src/schema/changes.ts";

const scalar = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, -0, 1e21, 0.1, "", "a", "a\r\nb\r\n", "a\nb\r", "💾", " "),
  fc.string(),
);
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: "medium" },
    scalar,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.constantFrom("a", "b"), { maxLength: 4 }),
    fc
      .array(fc.tuple(fc.constantFrom("a", "b", "c", "__proto__", "constructor"), tie("value")), {
        maxLength: 5,
      })
      .map((members) => Object.fromEntries(members)),
  ),
})).value;

const all = (fields: readonly Field[]): Field[] => fields.flatMap((field) => [field, ...all(field.fields)]);
const startsWith = (path: readonly unknown[], start: readonly unknown[]): boolean =>
  start.every((name, index) => path[index] === name);

describe("the fields of a value", () => {
  test("each has the value at its path; put back as it was, nothing changes; another one changes that path alone", () => {
    fc.assert(
      fc.property(json, json, (value, other) => {
        for (const field of all(fieldsOf(value))) {
          const { path } = field;
          let found: unknown;
          const same = setAt(value, path, (now) => {
            found = now;
            return now;
          });
          expect(found).toBe(field.value);
          expect(JSON.stringify(same)).toBe(JSON.stringify(value));
          const edited = setAt(value, path, () => other);
          for (const change of changesOf(value, edited))
            expect([path, startsWith(change.path, path)]).toEqual([path, true]);
          if (changesOf(field.value, other).length > 0) expect(changesOf(value, edited)).not.toEqual([]);
        }
      }),
    );
  });

  test("there are at most 200, and what is nested deeply or mixed is JSON", () => {
    fc.assert(
      fc.property(json, (value) => {
        const fields = all(fieldsOf(value));
        expect(fields.length).toBeLessThanOrEqual(200);
        for (const { path, kind } of fields)
          if (path.length > 4) expect(["group", "list"]).not.toContain(kind);
      }),
    );
    const many = Object.fromEntries(Array.from({ length: 201 }, (_, n) => [`n${n}`, n]));
    expect(fieldsOf(many)).toEqual([]);
    const kinds = Object.fromEntries(
      fieldsOf({
        text: "a",
        number: 1,
        yes: false,
        nothing: null,
        list: ["a"],
        empty: [],
        rows: [{ a: 1 }],
        mixed: ["a", 1],
        lists: [[1]],
        group: { a: 1 },
        bare: {},
        long: Array.from({ length: 300 }, () => "a"),
      }).map(({ name, kind }) => [name, kind]),
    );
    expect(kinds).toEqual({
      text: "text",
      number: "number",
      yes: "yes",
      nothing: "none",
      list: "list",
      empty: "list",
      rows: "list",
      mixed: "json",
      lists: "json",
      group: "group",
      bare: "json",
      long: "json",
    });
  });

  test("a schema decides where the value fits it", () => {
    const schema = {
      type: "object",
      required: ["mode", "hosts"],
      properties: {
        hosts: { type: "integer", minimum: 1, maximum: 9 },
        mode: { enum: ["quick", "thorough"] },
        tags: { type: "array", items: { enum: ["a", "b"] } },
        owner: { anyOf: [{ type: "string", format: "email" }, { type: "null" }] },
        secret: { type: "string", writeOnly: true },
        odd: { oneOf: [{ type: "string" }, { type: "number" }] },
        at: { type: "object", properties: { zone: { type: "string" } } },
      },
    };
    const value = { mode: "slow", hosts: "many", tags: ["b"], odd: 3, extra: true };
    const shown = fieldsOf(value, schema).map(({ name, kind, hints, isOptional }) => [
      name,
      kind,
      [...(isOptional ? ["optional"] : []), ...hints],
    ]);
    expect(shown).toEqual([
      ["hosts", "text", ["1 to 9", "not what the schema asks for"]],
      ["mode", "choice", ["not what the schema asks for"]],
      ["tags", "choices", ["optional"]],
      ["owner", "text", ["optional"]],
      ["secret", "text", ["optional"]],
      ["odd", "number", ["optional"]],
      ["at", "group", ["optional"]],
      ["extra", "yes", []],
    ]);
    expect(fieldsOf(value, schema)[1]?.choices).toEqual(["slow", "quick", "thorough"]);
    expect(isSecretAt(schema, ["secret"])).toBe(true);
    expect(isSecretAt(schema, ["hosts"])).toBe(false);
    expect(isSecretAt(schema, [])).toBe(true);
  });

  test("an answer starts with the defaults that fit, and with what is never left out", () => {
    const schema = {
      type: "object",
      required: ["tags", "at"],
      properties: {
        branch: { type: "string" },
        depth: { type: "integer", default: 50 },
        odd: { type: "integer", default: "50" },
        fast: { type: "boolean" },
        tags: { type: "array", items: { enum: ["a"] } },
        at: { type: "object", properties: { on: { type: "boolean" } } },
        by: { type: "object", properties: { on: { type: "boolean" } } },
      },
    };
    expect(startOf(schema)).toEqual({ depth: 50, fast: false, tags: [], at: { on: false } });
  });

  test("no schema that an agent writes stops the form", () => {
    const part = fc.oneof(json, fc.constantFrom("string", "array", "object", ["string", "null"]));
    const schema = fc.letrec<{ schema: unknown }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 3 },
        json,
        fc.record(
          {
            type: part,
            properties: fc.dictionary(fc.constantFrom("a", "b", "__proto__"), tie("schema")),
            items: tie("schema"),
            required: part,
            enum: part,
            anyOf: fc.array(tie("schema"), { maxLength: 2 }),
            default: part,
          },
          { requiredKeys: [] },
        ),
      ),
    })).schema;
    fc.assert(
      fc.property(json, schema, (value, one) => {
        for (const field of all(fieldsOf(value, one))) setAt(value, field.path, () => blankOf(field));
        startOf(one);
        isSecretAt(one, ["a", 0]);
      }),
    );
  });
});

test("a typed number is read as JSON has it, and exactly", () => {
  const any = { isInteger: false, min: undefined, max: undefined };
  expect(["12", " -0.5 ", "1e21", "1.50"].map((text) => readNumber(text, any))).toEqual([
    12, -0.5, 1e21, 1.5,
  ]);
  for (const text of ["", " ", "1,5", "0x1f", "01", "Infinity", "NaN", "9007199254740993", "1e400"])
    expect([text, readNumber(text, any)]).toEqual([text, { why: expect.any(String) }]);
  const limits = { isInteger: true, min: 1, max: 9 };
  expect(["0", "10", "1.5"].map((text) => readNumber(text, limits))).toEqual([
    { why: "At least 1." },
    { why: "At most 9." },
    { why: "A whole number is needed." },
  ]);
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
      expect(readNumber(String(number), any)).toBe(number === 0 ? 0 : number);
    }),
  );
});

test("a field changes no line ends but those that are typed", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "\r", "\n", "\r\n") });
  fc.assert(
    fc.property(text, (original) => {
      expect(fromField(inField(original), original)).toBe(original);
    }),
  );
  expect(fromField("a\nc\n", "a\r\nb\r\n")).toBe("a\r\nc\r\n");
  expect(fromField("a\nc\n", "a\nb\r\n")).toBe("a\nc\n");
});

test("a line diff has the lines of both texts, and little around them", () => {
  const lines = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 12 }).map((all) => all.join("\n"));
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const diff = lineDiff(before, after) ?? [];
      const without = (kind: string) =>
        diff.filter((line) => line.kind !== kind && line.kind !== "gap").map(({ text }) => text);
      if (diff.some(({ kind }) => kind === "gap")) return;
      expect(without("added").join("\n")).toBe(before);
      expect(without("removed").join("\n")).toBe(after);
    }),
  );
  const long = Array.from({ length: 2_000 }, (_, n) => `line ${n}`);
  const diff = lineDiff(long.join("\n"), long.with(1_000, "another").join("\n"));
  expect(diff?.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    "gap 998 lines",
    "same line 998",
    "same line 999",
    "removed line 1000",
    "added another",
    "same line 1001",
    "same line 1002",
    "gap 997 lines",
  ]);
  expect(lineDiff(long.join("\n"), long.map((line) => `${line}!`).join("\n"))).toBeNull();
  // Other line ends are seen, unless all are the same.
  expect(lineDiff("a\r\nb", "a\nb")?.map(({ text }) => text)).toEqual(["a␍", "a", "b"]);
  expect(lineDiff("a\r\nb", "a\r\nc")?.map(({ text }) => text)).toEqual(["a", "b", "c"]);
});
