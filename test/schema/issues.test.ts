/** The wording of the issues of an invalid value, which is the same in every part of the program. */
import { expect, test } from "vitest";
import * as z from "zod";
import { parseBody } from "../../src/doors/http/body.ts";
import { ErrandError } from "../../src/schema/errors.ts";
import { invalidRequest, issuesOf, readAs } from "../../src/schema/issues.ts";

const schema = z.strictObject({ name: z.string(), limits: z.strictObject({ n: z.int() }).optional() });

function problemsOf(value: unknown, place: Parameters<typeof issuesOf>[1]) {
  const { error } = readAs(schema, value);
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

test("a value of another type has no further issues", () => {
  const { error } = readAs(z.object({ events: z.array(z.string()).min(1).max(3), n: z.string().max(1) }), {
    events: "question",
    n: ["a", "b"],
  });
  expect(error && issuesOf(error, { whole: "it" }).issues).toEqual([
    { path: "events", reason: "must be a list, not a string" },
    { path: "n", reason: "must be a string, not a list" },
  ]);
});

test("an issue without a path names the value itself", () => {
  expect(problemsOf([], { whole: "the line" }).text).toBe("the line: must be an object, not a list");
});

test("a hostile value has a bounded number of issues, and the others are counted", () => {
  const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`k${n}`, 0]));
  const { issues, omitted } = problemsOf({ name: "a", ...many }, { whole: "it" });
  expect([issues.length, omitted]).toEqual([50, 2_950]);
  const { error } = readAs(schema, { name: 1, ...many });
  const refused = error && invalidRequest(error, { where: "body", whole: "The body" });
  expect(refused?.context.details).toMatchObject({ issues_omitted: 2_951 });
});

const LONG = "n".repeat(1_000_000);

test("a long name is cut in the paths, which repeat it", () => {
  const { text, issues } = problemsOf({ name: "a", [LONG]: 1 }, { whole: "it" });
  expect(issues).toEqual([{ path: `${"n".repeat(100)}…`, reason: "unknown field" }]);
  expect(text).toBe(`${"n".repeat(100)}…: unknown field`);
  const record = z.record(z.string(), z.strictObject({}));
  const { error } = readAs(record, {
    [LONG]: Object.fromEntries([..."abcdefgh"].map((key) => [key, 1])),
  });
  expect(JSON.stringify(error && issuesOf(error, { whole: "it" })).length).toBeLessThan(2_000);
});

test("a refused body with a long name before many half characters gets a short answer", () => {
  const body = JSON.stringify({ [LONG]: Array.from({ length: 60 }, () => "\ud83d") });
  let refused: unknown;
  try {
    parseBody(Buffer.from(body), "application/json");
  } catch (error) {
    refused = error;
  }
  if (!(refused instanceof ErrandError)) throw new Error("it was accepted");
  expect(refused.context.details).toMatchObject({
    issues: { length: 50, 0: { path: `${"n".repeat(100)}….0` } },
  });
  expect(JSON.stringify([refused.message, refused.context]).length).toBeLessThan(20_000);
});
