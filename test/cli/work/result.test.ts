/** Results of delegations that say which JSON theirs must be: `errand work` with each kind of program. */
import { describe, expect, test } from "vitest";
import { claude } from "../../../src/cli/work/presets/claude.ts";
import { codex } from "../../../src/cli/work/presets/codex.ts";
import { gemini } from "../../../src/cli/work/presets/gemini.ts";
import { resultReply, wantedResult } from "../../../src/cli/work/result.ts";

const SCHEMA = { type: "object", properties: { words: { type: "integer" } }, required: ["words"] };
const STRICT = { ...SCHEMA, additionalProperties: false };

describe("a text", () => {
  const data = { words: 5 };
  test.each([
    ["JSON", '{"words": 5}'],
    ["between blanks", '\n {"words":5}\r\n'],
    ["in a fence of JSON", '```json\n{"words": 5}\n```\n'],
    ["in a fence", '```\r\n{\n"words": 5\n}\n```'],
  ])("that is the result: %s", (_name, text) => {
    expect(resultReply(text, { schema: SCHEMA })).toEqual({
      state: "completed",
      message: { parts: [{ data }] },
    });
  });

  test.each([
    ["words", "It has 5 words.", "it is not JSON"],
    ["nothing", "", "it is not JSON"],
    ["words before a fence", 'Here:\n```json\n{"words":5}\n```', "it is not JSON"],
    ["two fences", '```json\n{"words":5}\n```\n```json\n{"words":6}\n```', "it is not JSON"],
    ["a fence that does not end", '```json\n{"words":5}', "it is not JSON"],
    ["a number that loses digits", '{"words":9007199254740993}', "it is not JSON"],
    ["nested too deeply to be sent", `${"[".repeat(100_000)}${"]".repeat(100_000)}`, "it is not JSON"],
    ["JSON that does not fit", '{"words":"5"}', "words: must be a whole number"],
    ["JSON of another kind", "5", "must be an object"],
  ])("that is none: %s", (_name, text, why) => {
    const reply = resultReply(text, { schema: SCHEMA });
    expect(reply).toMatchObject({
      state: "failed",
      error: {
        code: "result_invalid",
        message: expect.stringContaining(`The result does not fit the result_schema: ${why}`),
        retryable: false,
      },
    });
    expect(reply.text).toBe(text === "" ? undefined : text.slice(0, 64 * 1024));
  });
});

describe("a schema", () => {
  const args = (schema: unknown, preset?: typeof claude) =>
    wantedResult({ result_schema: schema }, preset)?.args("FILE");

  test("is an argument of a program that takes it; any other is told in words", () => {
    expect(wantedResult({}, claude)).toBeUndefined();
    expect(wantedResult({ result_schema: SCHEMA }, claude)).toEqual({
      schema: SCHEMA,
      isSeparate: true,
      args: expect.any(Function),
      words: [],
    });
    expect(args(SCHEMA, claude)).toEqual(["--json-schema", JSON.stringify(SCHEMA)]);
    const told = { isSeparate: false, words: [expect.stringContaining(JSON.stringify(SCHEMA))] };
    for (const preset of [undefined, gemini, codex]) {
      expect(wantedResult({ result_schema: SCHEMA }, preset)).toMatchObject({ schema: SCHEMA, ...told });
      expect(args(SCHEMA, preset)).toEqual([]);
    }
    expect(args(STRICT, codex)).toEqual(["--output-schema", "FILE"]);
  });

  test.each([true, false, { type: "integer" }, { enum: [1] }, { ...SCHEMA, anyOf: [{}] }])(
    "that the tools of Claude's provider do not take is told: %j",
    (schema) => expect(args(schema, claude)).toEqual([]),
  );

  const inside = (one: object) => ({ ...STRICT, properties: { words: one } });
  test.each([
    SCHEMA,
    { ...STRICT, required: [] },
    { ...STRICT, additionalProperties: { type: "string" } },
    { ...STRICT, minProperties: 1 },
    { ...STRICT, type: ["object", "null"] },
    { ...STRICT, anyOf: [STRICT] },
    inside(SCHEMA),
    inside({ type: "string", minLength: 1 }),
    inside({ type: ["object", "null"] }),
    inside({ type: "array", items: SCHEMA }),
    inside({ type: "array", items: true }),
    inside({ anyOf: [SCHEMA, { type: "null" }] }),
    { ...inside({ $ref: "#/$defs/a" }), $defs: { a: SCHEMA } },
  ])("that Codex' provider does not take as a strict one is told: %j", (schema) =>
    expect(args(schema, codex)).toEqual([]),
  );

  test.each([
    inside(STRICT),
    inside({ type: "array", items: STRICT, minItems: 1 }),
    inside({ anyOf: [STRICT, { type: "null" }], description: "x" }),
    { ...inside({ $ref: "#/$defs/a" }), $defs: { a: { enum: ["a"] } } },
  ])("that it takes goes to it: %j", (schema) => expect(args(schema, codex)).toHaveLength(2));
});
