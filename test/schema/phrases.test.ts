/** What zod finds, in our words: every kind of issue that zod 4 has. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { issuesOf, readAs } from "../../src/schema/issues.ts";
import { jsonObjectSchema } from "../../src/schema/json-object.ts";
import { httpUrlSchema, instantSchema } from "../../src/schema/values.ts";
import { zodPhraseIn } from "../support/zod-phrases.ts";

const color = z.enum(["red", "blue"]);
const shape = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("circle"), r: z.number() }),
  z.object({ kind: z.literal("dot") }),
]);

const KINDS: Record<
  z.core.$ZodIssue["code"],
  readonly [schema: z.ZodType, value: unknown, reason: string][]
> = {
  invalid_type: [
    [z.string(), undefined, "missing"],
    [z.string(), null, "must be a string, not null"],
    [z.string(), 5, "must be a string, not a number"],
    [z.number(), "5", "must be a number, not a string"],
    [z.number(), Number.POSITIVE_INFINITY, "must be a number"],
    [z.int(), 1.5, "must be a whole number"],
    [z.int(), [], "must be a whole number, not a list"],
    [z.boolean(), {}, "must be true or false, not an object"],
    [z.object({}), true, "must be an object, not true or false"],
    [z.array(z.int()), "x", "must be a list, not a string"],
    [z.tuple([z.int()]), 1, "must be a list, not a number"],
    [z.record(z.string(), z.int()), [], "must be an object, not a list"],
    [z.date(), "x", "must be a date, not a string"],
    [z.string(), () => 1, "must be a string, not a function"],
    [z.never(), 1, "not allowed"],
    [z.object({ a: z.string().optional() }).required(), {}, "missing"],
  ],
  invalid_value: [
    [color, "green", 'must be one of "red", "blue"'],
    [color, undefined, "missing"],
    [z.literal(3), 4, "must be 3"],
  ],
  too_big: [
    [z.string().max(3), "four", "at most 3 characters"],
    [z.string().max(1), "four", "at most 1 character"],
    [z.string().length(3), "four", "exactly 3 characters"],
    [z.array(z.int()).max(1), [1, 2], "at most 1 item"],
    [z.set(z.int()).max(1), new Set([1, 2]), "at most 1 item"],
    [z.number().max(3), 4, "must be at most 3"],
    [z.number().lt(3), 3, "must be less than 3"],
    [z.int(), 2 ** 60, `must be at most ${Number.MAX_SAFE_INTEGER}`],
  ],
  too_small: [
    [z.string().min(1), "", "at least 1 character"],
    [z.string().min(2), "a", "at least 2 characters"],
    [z.array(z.int()).min(2), [1], "at least 2 items"],
    [z.array(z.int()).length(2), [1], "exactly 2 items"],
    [z.number().min(3), 2, "must be at least 3"],
    [z.number().positive(), 0, "must be greater than 0"],
  ],
  invalid_format: [
    [instantSchema, "today", "must be a time with its zone, such as 2026-01-31T08:00:00Z"],
    [z.iso.date(), "x", "must be a date, such as 2026-01-31"],
    [z.iso.time(), "x", "must be a time of day, such as 08:00:00"],
    [z.iso.duration(), "x", "must be a duration, such as PT5M"],
    [z.url(), "x", "must be a URL"],
    [httpUrlSchema, "ftp://x", "must be an http or https URL"],
    [httpUrlSchema, undefined, "missing"],
    [z.email(), "x", "must be an email address"],
    [z.base64(), "!", "must be base64"],
    [z.ipv4(), "x", "must be an IPv4 address"],
    [z.string().startsWith("a"), "b", 'must begin with "a"'],
    [z.string().endsWith("a"), "b", 'must end with "a"'],
    [z.string().includes("a"), "b", 'must contain "a"'],
    [z.string().lowercase(), "B", "must have no capital letters"],
    [z.string().regex(/^a$/), "b", "must match /^a$/"],
    [z.jwt(), "b", "is no jwt"],
  ],
  not_multiple_of: [[z.number().multipleOf(2), 3, "must be a multiple of 2"]],
  unrecognized_keys: [
    [z.strictObject({}), { a: 1 }, "unknown field"],
    [z.strictObject({ task: z.string().optional() }), { tsak: 1 }, "unknown field; did you mean task?"],
    [
      z.strictObject({ ttl_seconds: z.int().optional() }),
      { ttlSeconds: 1 },
      "unknown field; did you mean ttl_seconds?",
    ],
    [z.strictObject({ task: z.string() }), { tsak: 1, task: "x" }, "unknown field"],
  ],
  invalid_key: [
    [
      z.record(z.string().max(2), z.int()),
      { abc: 1 },
      "a member must not have this name: at most 2 characters",
    ],
  ],
  invalid_element: [
    [
      z.map(z.date(), z.int()),
      new Map([[new Date(0), "x"]]),
      "an element does not fit: must be a whole number, not a string",
    ],
  ],
  invalid_union: [
    [z.union([z.boolean(), z.object({})]), 5, "must be true or false or an object, not a number"],
    [
      z.union([z.boolean(), z.strictObject({ a: z.int() })]),
      { a: "x" },
      "must be a whole number, not a string",
    ],
    [
      z.union([z.object({ a: z.int() }), z.object({ b: z.int() })]),
      { c: 1 },
      "fits none of the 2 alternatives",
    ],
    [z.union([z.string(), z.int()]), undefined, "missing"],
    [z.xor([z.string(), z.string().min(1)]), "x", "fits several alternatives, and must fit exactly one"],
    [shape, { kind: "square" }, 'must be one of "circle", "dot"'],
    [shape, {}, "missing"],
    [shape, null, "must be an object, not null"],
  ],
  custom: [
    [z.custom((value) => value === 1), 2, "does not fit"],
    [z.custom((value) => value === 1), undefined, "missing"],
    [z.string().refine(() => false, "the schema's own words"), "x", "the schema's own words"],
    [jsonObjectSchema, [], "must be an object, not a list"],
  ],
};

describe.each(Object.entries(KINDS))("%s", (_code, rows) => {
  test.each(rows.map(([schema, value, reason]) => [reason, schema, value] as const))(
    "%s",
    (reason, schema, value) => {
      const { error } = readAs(schema, value);
      if (!error) throw new Error("it fits");
      const { issues, text } = issuesOf(error, { whole: "it" });
      expect(issues).toMatchObject([{ reason }]);
      expect(zodPhraseIn(reason.startsWith("must match /") ? "" : text)).toBeUndefined();
    },
  );
});

test("an issue inside the alternative that is meant has its whole path", () => {
  const { error } = readAs(
    z.object({ cancel: z.union([z.boolean(), z.strictObject({ why: z.string() })]) }),
    {
      cancel: { why: 1, more: 2 },
    },
  );
  expect(error && issuesOf(error, { where: "body", whole: "it" }).issues).toEqual([
    { path: "cancel.why", reason: "must be a string, not a number" },
    { path: "cancel.more", reason: "unknown field in the body" },
  ]);
});

test("the words are given with each check: zod's configuration, which a program shares, stays", () => {
  const before = { ...z.config() };
  readAs(z.string(), 1);
  expect(z.config()).toEqual(before);
  expect(z.string().safeParse(1).error?.issues[0]?.message).toBe(
    "Invalid input: expected string, received number",
  );
});
