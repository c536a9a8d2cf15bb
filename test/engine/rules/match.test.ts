/** Which actions a rule fits, and all that must not fit one. */
import { expect, test } from "vitest";
import { fitOf } from "../../../src/engine/rules/match.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import { ruleRequestSchema } from "../../../src/schema/rule-request.ts";

/** `deny` unless the test is about approvals, because what is unclear shows only there. */
function fits(
  constraints: unknown[],
  args: string,
  more: Record<string, unknown> = {},
  steps = 10_000,
): string {
  const request = ruleRequestSchema.parse({
    ...{ agent: "scout", action: "write", decision: "deny", arguments: constraints },
    ...more,
  });
  const { for_seconds: _, expires_at: __, max_uses: ___, ...rest } = request;
  const doc = { ...rest, only_these_arguments: false, by: "operator", token: "", body: "", ...more };
  return fitOf(doc, { name: "write", arguments: JSON.parse(args) }, { left: steps });
}

const under = (path_prefix: string) => [{ name: "path", path_prefix }];
const path = (value: string) => JSON.stringify({ path: value });

test.each([
  ["/srv/a", "yes"],
  ["/srv/a/", "yes"],
  ["/srv/a/b", "yes"],
  ["/srv/a/b/c.txt", "yes"],
  ["/srv/ab", "no"],
  ["/srv/b", "no"],
  // A folder that contains it.
  ["/srv", "unclear"],
  ["/", "unclear"],
  ["/srv/a/../b", "unclear"],
  ["/srv/a/..", "unclear"],
  ["/srv/a/./b", "unclear"],
  ["/srv/a//b", "unclear"],
  ["//srv/a/b", "unclear"],
  ["/srv/a/%2e%2e/b", "unclear"],
  ["/srv/a%2fb", "unclear"],
  ["/srv/a\\..\\b", "unclear"],
  ["/srv/a/.. /b", "unclear"],
  ["/srv/a/.../b", "unclear"],
  ["/srv/a\u0000/../b", "unclear"],
  ["/srv/a\n/b", "unclear"],
  ["/srv/a／..／b", "unclear"],
  ["/srv/a/‥/b", "unclear"],
  ["/srv/a/\u200b../b", "unclear"],
  ["/srv/a/\ud800", "unclear"],
  ["/SRV/A/b", "unclear"],
  ["srv/a/b", "unclear"],
  ["~/srv/a", "unclear"],
  ["/srv/a/$HOME", "unclear"],
  ["/srv/a/*", "unclear"],
  ["/srv/a/`id`", "unclear"],
  ["file:///srv/a/b", "unclear"],
  ["", "unclear"],
  [" /srv/a", "unclear"],
])("the path %j is below /srv/a: %s", (value, expected) => {
  expect(fits(under("/srv/a"), path(value))).toBe(expected);
});

test("a relative prefix fits relative paths only, and a shell's text is no path", () => {
  expect(fits(under("src"), path("src/x.ts"))).toBe("yes");
  expect(fits(under("src"), path("/src/x.ts"))).toBe("unclear");
  expect(fits(under("/"), path("/srv/x"))).toBe("yes");
  expect(fits([{ name: "cmd", path_prefix: "git" }], JSON.stringify({ cmd: "git; rm -rf /" }))).not.toBe(
    "yes",
  );
});

test.each([
  ["yes", { name: "n", equals: 1 }, '{"n":1}'],
  ["yes", { name: "n", equals: 1 }, '{"n":1.0}'],
  ["no", { name: "n", equals: 1 }, '{"n":"1"}'],
  ["no", { name: "n", equals: 1 }, '{"n":true}'],
  ["no", { name: "n", equals: null }, "{}"],
  ["yes", { name: "n", equals: null }, '{"n":null}'],
  ["yes", { name: "n", equals: { a: [1, { b: 2 }] } }, '{"n":{"a":[1,{"b":2}]}}'],
  ["no", { name: "n", equals: { a: [1, { b: 2 }] } }, '{"n":{"a":[1,{"b":2,"c":3}]}}'],
  ["no", { name: "n", equals: {} }, '{"n":{"__proto__":{}}}'],
  ["yes", { name: "n", minimum: 1, maximum: 3 }, '{"n":3}'],
  ["no", { name: "n", minimum: 1, maximum: 3 }, '{"n":3.1}'],
  ["unclear", { name: "n", minimum: 1, maximum: 3 }, '{"n":"2"}'],
  ["unclear", { name: "n", maximum: 3 }, '{"n":null}'],
  ["unclear", { name: "n", maximum: 3 }, '{"n":[2]}'],
  ["unclear", { name: "n", maximum: 3 }, '{"n":-1e999}'],
  ["yes", { name: "argv", items_prefix: ["git", "status"] }, '{"argv":["git","status","-s"]}'],
  ["no", { name: "argv", items_prefix: ["git", "status"] }, '{"argv":["git","stat"]}'],
  ["no", { name: "argv", items_prefix: ["git", "status"] }, '{"argv":["git"]}'],
  ["no", { name: "argv", items_prefix: ["git", "status"] }, '{"argv":["git status"]}'],
  ["unclear", { name: "argv", items_prefix: ["git", "status"] }, '{"argv":"git status"}'],
  ["unclear", { name: "argv", items_prefix: ["git"] }, '{"argv":{"0":"git"}}'],
  ["unclear", { name: "path", path_prefix: "/srv" }, '{"path":["/srv/a"]}'],
  ["yes", { name: "to", schema: { enum: ["staging", "test"] } }, '{"to":"test"}'],
  ["no", { name: "to", schema: { enum: ["staging", "test"] } }, '{"to":"prod"}'],
  ["yes", { pointer: "/options/depth", maximum: 3 }, '{"options":{"depth":2}}'],
  ["no", { pointer: "/options/depth", maximum: 3 }, '{"options":{}}'],
  ["no", { pointer: "/options/depth", maximum: 3 }, '{"options.depth":2,"/options/depth":2}'],
  ["yes", { pointer: "/a~1b/m~0n", equals: 1 }, '{"a/b":{"m~n":1}}'],
  ["yes", { pointer: "/argv/1", equals: "x" }, '{"argv":["a","x"]}'],
  ["no", { pointer: "/argv/01", equals: "x" }, '{"argv":["a","x"]}'],
  ["no", { pointer: "/argv/-1", equals: "x" }, '{"argv":["a","x"]}'],
  ["no", { pointer: "/argv/length", maximum: 3 }, '{"argv":["a"]}'],
])("%s: %j on %s", (expected, constraint, args) => {
  expect(fits([constraint], args)).toBe(expected);
});

test.each(["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"])(
  "%s is an argument only if it is given",
  (name) => {
    const anything = [{ name, schema: true }];
    expect(fits(anything, "{}")).toBe("no");
    expect(fits([{ pointer: `/${name}/name`, schema: true }], "{}")).toBe("no");
    expect(fits(anything, `{"${name}":1}`)).toBe("yes");
    // Nor does one that the rule does not name hide.
    const only = { decision: "approve", only_these_arguments: true };
    expect(fits([], `{"${name}":1}`, only)).toBe("no");
    expect(fits([{ name: "a", equals: 1 }], `{"a":1,"${name}":{"x":1}}`, only)).toBe("no");
  },
);

test("with only_these_arguments, whatever the rule does not name makes it not fit", () => {
  const only = { decision: "approve", only_these_arguments: true };
  expect(fits([], "{}", only)).toBe("yes");
  expect(fits([], '{"force":true}', only)).toBe("no");
  expect(fits([{ name: "a", equals: 1 }], '{"a":1}', only)).toBe("yes");
  expect(fits([{ name: "a", equals: 1 }], '{"a":1,"force":false}', only)).toBe("no");
  const depth = [{ pointer: "/options/depth", maximum: 3 }];
  expect(fits(depth, '{"options":{"depth":1}}', only)).toBe("yes");
  expect(fits(depth, '{"options":{"depth":1,"force":true}}', only)).toBe("no");
  expect(fits(depth, '{"options":{"depth":1},"x":{}}', only)).toBe("no");
  const first = [{ pointer: "/argv/0", equals: "ls" }];
  expect(fits(first, '{"argv":["ls"]}', only)).toBe("yes");
  expect(fits(first, '{"argv":["ls","-l"]}', only)).toBe("no");
});

test("a rule's name, its pattern and several constraints all apply", () => {
  expect(fits([], "{}", { action: "wri*" })).toBe("yes");
  expect(fits([], "{}", { action: "write2" })).toBe("no");
  expect(fits([], "{}", { action: "WRITE" })).toBe("no");
  const two = [...under("/srv"), { name: "n", maximum: 3 }];
  expect(fits(two, '{"path":"/srv/a","n":3}')).toBe("yes");
  expect(fits(two, '{"path":"/srv/a","n":4}')).toBe("no");
  expect(fits(two, '{"path":"/srv/../a","n":4}')).toBe("no");
  expect(fits(two, '{"path":"/srv/a"}')).toBe("no");
});

test("what takes too many steps is unclear, and the steps are shared", () => {
  const many = JSON.stringify({ n: Array.from({ length: 5_000 }, (_, n) => n) });
  expect(fits([{ name: "n", schema: { items: { type: "number" } } }], many, {}, 1_000)).toBe("unclear");
  const deep = JSON.stringify({
    n: Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`k${n}`, n])),
  });
  const only = { decision: "approve", only_these_arguments: true };
  expect(fits([{ pointer: "/n/k0", equals: 0 }], deep, only, 10)).not.toBe("yes");
  const long = JSON.stringify({ path: `/srv/${"a/".repeat(100_000)}` });
  expect(fits(under("/srv"), long)).toBe("unclear");
  const wide = JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, n])));
  expect(fits([], wide, only)).toBe("unclear");
  const steps = { left: LIMITS.rule_steps.value };
  const request = ruleRequestSchema.parse({ agent: "a", action: "w", decision: "deny" });
  const doc = { ...request, only_these_arguments: true, by: "operator", token: "", body: "" };
  fitOf({ ...doc, arguments: [{ name: "n", equals: 1 }] }, { name: "w", arguments: { n: 1 } }, steps);
  expect(steps.left).toBeLessThan(LIMITS.rule_steps.value);
});

test.each([
  [{ agent: "scout", action: "w", decision: "approve", arguments: [{ name: "a" }] }, "give at least one of"],
  [{ agent: "scout", action: "w", decision: "approve", arguments: [{ equals: 1 }] }, "exactly one of"],
  [{ agent: "scout", action: "w*x", decision: "approve" }, "only at the end"],
  [
    { agent: "scout", action: "w", decision: "approve", arguments: [{ pointer: "a", equals: 1 }] },
    "JSON Pointer",
  ],
  [
    { agent: "scout", action: "w", decision: "approve", arguments: [{ pointer: "/~2", equals: 1 }] },
    "JSON Pointer",
  ],
  [{ agent: "scout", action: "w", decision: "maybe" }, "approve"],
  [{ agent: "scout", action: "w", decision: "approve", arguments: { __proto__: null, path: {} } }, "array"],
  [
    {
      agent: "scout",
      action: "w",
      decision: "approve",
      arguments: [{ name: "a", schema: { pattern: "(a+)+$" } }],
    },
    "pattern",
  ],
  [
    {
      agent: "scout",
      action: "w",
      decision: "approve",
      arguments: [{ name: "a", equals: "x".repeat(5_000) }],
    },
    "4096 bytes",
  ],
])("a rule that cannot be kept is refused: %#", (request, reason) => {
  expect(JSON.stringify(ruleRequestSchema.safeParse(request).error?.issues)).toContain(reason);
});
