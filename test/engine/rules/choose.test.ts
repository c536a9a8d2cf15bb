/** Which rules answer a question, and what it costs to find them. */
import { expect, test } from "vitest";
import { chooseRules } from "../../../src/engine/rules/choose.ts";
import type { StoredRule } from "../../../src/engine/rules/stored-rule.ts";

const rule = (
  id: string,
  more: Partial<StoredRule["doc"]> = {},
  at: Partial<StoredRule> = {},
): StoredRule => ({
  ...{
    id,
    scope: "all",
    created_at: 1,
    expires_at: null,
    max_uses: null,
    uses: 0,
    last: "",
    revoked_at: null,
  },
  doc: {
    ...{ agent: "scout", action: "write", arguments: [], only_these_arguments: false, decision: "approve" },
    ...{ by: "operator", token: "", body: "" },
    ...more,
  },
  ...at,
});

const question = (...requests: object[]) => ({
  kind: "input" as const,
  requests: requests.map((action, n) => ({
    request_id: `r${n}`,
    message: { messageId: "m", role: "ROLE_AGENT" as const, parts: [{ text: "?" }] },
    action: { name: "write", arguments: {}, ...action },
  })),
});

test("the oldest rule that may still answer does, and a principal's rules must cover all requests", () => {
  const chosen = (rules: StoredRule[], ...actions: object[]) => {
    const choice = chooseRules(rules, question(...actions), 100);
    return choice.kind === "ruled" ? choice.answers.map((one) => one.rule.id) : choice.kind;
  };
  const ended = [
    rule("a", {}, { revoked_at: 1 }),
    rule("b", {}, { expires_at: 100 }),
    rule("c", {}, { max_uses: 2, uses: 2 }),
  ];
  expect(chosen(ended, {})).toBe("none");
  expect(chosen([...ended, rule("d", {}, { max_uses: 1 }), rule("e")], {}, {})).toEqual(["d", "e"]);
  expect(
    chosen([rule("a", { by: "approver:ann" }), rule("b", { action: "read" })], {}, { name: "read" }),
  ).toBe("none");
  expect(chosen([rule("a"), rule("b", { decision: "deny" })], {})).toEqual(["b"]);
  expect(chosen([rule("a"), rule("b", { decision: "deny", action: "read" })], {}, { name: "read" })).toEqual([
    "a",
    "b",
  ]);
  expect(chosen([rule("b", { decision: "deny", action: "read" })], {}, { name: "read" })).toBe("person");
  expect(chosen([rule("b", { decision: "deny" }, { max_uses: 1 })], {}, {})).toBe("person");
});

test("beyond a number of steps a person is asked, however many rules and however large the actions", () => {
  const paths = Array.from({ length: 32 }, (_, n) => ({ name: `k${n}`, path_prefix: `/srv/${n}` }));
  const rules = Array.from({ length: 200 }, (_, n) => rule(`rul_${n}`, { arguments: paths }));
  // One character that the normal form makes 18 of.
  const long = `/srv/${"\ufdfa".repeat(4_000)}`;
  const args = Object.fromEntries(Array.from({ length: 32 }, (_, n) => [`k${n}`, long]));
  const wide = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, n]));
  const strict = rules.map(({ doc, ...one }) => ({ ...one, doc: { ...doc, only_these_arguments: true } }));
  const deep = rules.map(({ doc, ...one }) => ({
    ...one,
    doc: { ...doc, arguments: [{ pointer: `/${"a/".repeat(100)}`, schema: { items: { type: "object" } } }] },
  }));
  const before = process.cpuUsage();
  for (const [some, argument] of [
    [rules, args],
    [strict, args],
    [strict, wide],
    [deep, wide],
  ] as const) {
    const requests = Array.from({ length: 32 }, () => ({ arguments: argument }));
    expect(["none", "person"]).toContain(chooseRules(some, question(...requests), 0).kind);
  }
  expect(process.cpuUsage(before).user / 1e6).toBeLessThan(2);
});
