/** What the head of a delegation says, and what its conversation hides. */
import { expect, test } from "vitest";
import { adviceOf, endingOf, placeIn, whereText } from "../../src/console/delegation/head-text.ts";
import { errorText } from "../../src/console/ui/error-text.ts";
import { failureWords, ownHelp } from "../../src/console/ui/failures.ts";
import type { State } from "../../src/schema/delegation.ts";
import { ERRORS } from "../../src/schema/errors.ts";
import { HIDDEN, isSecretIn, withoutSecrets } from "../../src/schema/secrets.ts";

const errorOf = (code: string, message: string) => ({
  ...{ category: "UPSTREAM" as const, code, message, retryable: false },
  recovery: "",
});

test.each([
  ["canceled", "Canceled by caller:alice: not needed: really", "alice canceled it", "not needed: really"],
  ["canceled", "Canceled by operator", "operator canceled it", ""],
  // By a later version of the broker.
  ["canceled", "Stopped", "It was canceled", "Stopped"],
  ["rejected", "I only count words.", "scout refused it", "I only count words."],
] as const)("%s, %s: by whom and why", (state: State, message, what, words) => {
  expect(endingOf({ state, target: "scout", error: errorOf(state, message) })).toEqual({ what, words });
});

test.each([
  [{ code: "disk_full", attempt: 2, step: "packing" }, "It was at 5/8 packing, in attempt 2 of 3."],
  [{ code: "disk_full", attempt: 1 }, "In attempt 1 of 3."],
  [{ code: "disk_full", attempt: 1, most: 1, step: "Done." }, "It was at 5/8 Done."],
  [{ code: "disk_full", attempt: 1, most: 1 }, ""],
  // Perhaps no worker has started it.
  [{ code: "not_picked_up", attempt: 1 }, ""],
  [{ code: "deadline_exceeded", attempt: 2 }, "In attempt 2 of 3."],
])("where it failed: %o", ({ code, attempt, most = 3, step }: Failed, text) => {
  const progress = step === undefined ? null : { done: 5, total: 8, current_step: step };
  expect(whereText({ error: errorOf(code, ""), attempt, max_attempts: most, progress })).toBe(text);
});

interface Failed {
  readonly code: string;
  readonly attempt: number;
  readonly most?: number;
  readonly step?: string;
}

test("advice fits whose failure it is", () => {
  const advice = (code: string, recovery: string, mayRepeat = true) =>
    adviceOf({ target: "scout", error: { code, recovery } }, mayRepeat);
  const own = "Read error.message, which the agent wrote.";
  expect([
    advice("attempts_exhausted", ERRORS.attempts_exhausted.recovery),
    advice("disk_full", own),
    // A code of the broker's, but the agent gave it.
    advice("interrupt_expired", own, false),
    // By version 0.1.0, with the recovery of the broker's code.
    advice("rate_limited", ERRORS.rate_limited.recovery, false),
  ]).toEqual([
    "Look at the agent's workers, then try again.",
    "The message is from scout. Try again if its cause is gone, or delegate again with changes.",
    "The message is from scout.",
    "The message is from scout.",
  ]);
});

test("every failure that the broker declares has words and help", () => {
  const declared = Object.entries(ERRORS).filter(
    ([code, { status }]) => status === null && !AGENTS.has(code),
  );
  expect(declared.map(([code]) => code).filter((code) => failureWords(code) === undefined)).toEqual([]);
  expect(declared.filter(([code, { recovery }]) => ownHelp({ code, recovery }) === undefined)).toEqual([]);
  expect(errorText({ code: "disk_full", message: "" })).toBe("no message (disk_full)");
});
/** The agent declares these, or a person does. */
const AGENTS = new Set(["agent_error", "rejected", "canceled"]);

test("the place in the queue is by priority, then by time, and only told if the whole queue is known", () => {
  const at = (second: number) => new Date(second * 1000).toISOString();
  const one = (
    id: string,
    second: number,
    more: { priority?: number; delayed?: number; attempt?: number },
  ) => ({
    ...{ id, created_at: at(second), priority: more.priority ?? 5, attempt: more.attempt ?? 1 },
    not_before_at: more.delayed === undefined ? null : at(more.delayed),
  });
  const queue = [
    one("first", 1, {}),
    one("urgent", 9, { priority: 9 }),
    one("was delayed", 0, { delayed: 5 }),
    one("last", 8, {}),
    one("delayed", 0, { delayed: 99 }),
  ];
  const place = (id: string, waiting = 4) => placeIn(queue, id, waiting, 10_000);
  expect(["urgent", "first", "was delayed", "last", "delayed"].map((id) => place(id))).toEqual([
    1,
    2,
    3,
    4,
    null,
  ]);
  expect([place("last", 5), place("elsewhere")]).toEqual([null, null]);
  expect(placeIn([one("a", 1, {}), one("b", 2, { attempt: 2 })], "a", 2, 10_000)).toBeNull();
});

const PASSWORD = { type: "string", format: "password" };

test.each([
  ["a member", { properties: { user: { type: "string" }, key: PASSWORD } }],
  ["a member for writing only", { properties: { key: { writeOnly: true } } }],
  ["by reference", { properties: { key: { $ref: "#/$defs/secret" } }, $defs: { secret: PASSWORD } }],
  ["in a choice", { anyOf: [{ properties: { key: { type: ["null", "string"], format: "password" } } }] }],
  ["in a list", { properties: { key: { type: "array", items: PASSWORD } } }],
])("an answer is shown without its secret: %s", (_, schema) => {
  const answer = { user: "ann", key: "hunter2" };
  expect(withoutSecrets(answer, schema)).toEqual({ user: "ann", key: HIDDEN });
  expect(withoutSecrets({ deep: [answer] }, schema)).toEqual({ deep: [{ user: "ann", key: HIDDEN }] });
  const secrets = [
    [["key"], "x"],
    [["user"], "ann"],
    [["all"], [answer]],
    [["key", 0], 1],
  ] as const;
  expect(secrets.map(([path, value]) => isSecretIn(path, value, schema))).toEqual([true, false, true, true]);
});

test("an answer that is a secret as a whole is hidden, others are shown as they are", () => {
  expect(withoutSecrets("hunter2", PASSWORD)).toBe(HIDDEN);
  expect(withoutSecrets(["hunter2"], { type: "array", items: PASSWORD })).toBe(HIDDEN);
  const answer = { format: "password", key: [1, null] };
  expect(withoutSecrets(answer, { properties: { key: { type: "array" } } })).toEqual(answer);
  expect(withoutSecrets(answer, undefined)).toEqual(answer);
});

test("a schema that refers to itself again and again is searched once, a very large one not at all", () => {
  const part = (n: number) => ({ anyOf: [{ $ref: `#/$defs/${n + 1}` }, { $ref: `#/$defs/${n + 1}` }] });
  const $defs = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [n, part(n)]));
  expect(withoutSecrets({ key: 1 }, { $ref: "#/$defs/0", $defs })).toEqual({ key: 1 });
  expect(withoutSecrets({ key: 1 }, { properties: { key: { ...PASSWORD, $ref: "#" } } })).toEqual({
    key: HIDDEN,
  });
  expect(withoutSecrets({ key: 1 }, { anyOf: Array.from({ length: 30_000 }, () => ({})) })).toBe(HIDDEN);
});
