/** The wording of the issues of an invalid value, which is the same in every part of the program. */
import { expect, test } from "vitest";
import * as z from "zod";
import { invalidRequest, issuesOf } from "../../src/schema/issues.ts";

const schema = z.strictObject({ name: z.string(), limits: z.strictObject({ n: z.int() }).optional() });

function problemsOf(value: unknown, place: Parameters<typeof issuesOf>[1]) {
  const { error } = schema.safeParse(value);
  if (error === undefined) throw new Error("it is valid");
  return issuesOf(error, place);
}

test("an unknown field is named with its place", () => {
  const { text, issues } = problemsOf(
    { name: "a", limits: { n: 1, m: 2 } },
    { where: "body", whole: "The body" },
  );
  expect(text).toBe("limits.m: unknown field in the body");
  expect(issues).toEqual([{ path: "limits.m", reason: "unknown field in the body" }]);
  expect(problemsOf({ name: "a", tsk: 1 }, { whole: "the line" }).text).toBe("tsk: unknown field");
  expect(problemsOf({ name: "a", tsk: 1 }, { whole: "it", under: "items.3" }).text).toBe(
    "items.3.tsk: unknown field",
  );
});

test("an issue without a path names the value itself", () => {
  expect(problemsOf([], { whole: "the line" }).text).toMatch(/^the line: Invalid input/);
});

test("a hostile value has a bounded number of issues, and the others are counted", () => {
  const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`k${n}`, 0]));
  const { issues, omitted } = problemsOf({ name: "a", ...many }, { whole: "it" });
  expect([issues.length, omitted]).toEqual([50, 2_950]);
  const { error } = schema.safeParse({ name: 1, ...many });
  const refused = error && invalidRequest(error, { where: "body", whole: "The body" });
  expect(refused?.context.details).toMatchObject({ issues_omitted: 2_951 });
});
