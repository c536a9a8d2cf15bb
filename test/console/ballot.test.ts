/** Answers beside those of others: which void none, and who is said to have answered. */
import { expect, test } from "vitest";
import { isDenial } from "../../src/console/needs/ballot.ts";
import { whoAnswered } from "../../src/console/needs/who-answered.ts";
import type { Message } from "../../src/schema/a2a.ts";
import type { Delegation } from "../../src/schema/delegation.ts";

const APPROVE = { decision: "approve" } as const;
const DENY = { decision: "deny" } as const;

test("an answer is a denial if it denies everything", () => {
  expect(isDenial(DENY)).toBe(true);
  expect(isDenial({ answers: { a: DENY, b: { ...DENY, text: "no" } } })).toBe(true);
  expect(isDenial({ answers: { a: DENY, b: APPROVE } })).toBe(false);
  expect(isDenial({ answers: { a: DENY, b: "later" } })).toBe(false);
  expect(isDenial(APPROVE)).toBe(false);
  expect(isDenial("deny")).toBe(false);
});

const AT = "2026-01-31T09:00:00.000Z";
const question: Message = { messageId: "q", role: "ROLE_AGENT", parts: [{ text: "May I?" }] };
const interrupt = {
  ...{ id: "int_1", kind: "input" as const, raised_at: AT, expires_at: AT },
  requests: [{ request_id: "a", message: question }],
};
const said = (more: object): Message => ({
  ...{ messageId: "a", role: "ROLE_USER", parts: [] },
  metadata: { interrupt_id: "int_1", by: "approver:ann", decision: "approve", ...more },
});
const EXPIRED: Delegation["error"] = {
  category: "TIMEOUT",
  ...{ code: "interrupt_expired", message: "too late", retryable: false, recovery: "Ask again." },
};
const VOTE = { vote: true };

test.each<[string, Message[], Partial<Delegation>, string]>([
  ["is answered", [said({})], { state: "submitted" }, "approver ann approved this"],
  [
    "is answered by several",
    [said(VOTE), said({ ...VOTE, by: "approver:bob" })],
    {},
    "approver bob approved this",
  ],
  ["is answered, then canceled", [said({})], { state: "canceled" }, "approver ann approved this"],
  ["has expired", [], { error: EXPIRED }, "Nobody answered in time"],
  ["has expired with too few votes", [said(VOTE)], { error: EXPIRED }, "Nobody answered in time"],
  [
    "is canceled with too few votes",
    [said(VOTE)],
    { state: "canceled" },
    "This question is no longer open: the delegation is canceled",
  ],
  [
    "was answered before the next one expired",
    [said(VOTE), { ...question, messageId: "next" }],
    { error: EXPIRED },
    "approver ann approved this",
  ],
])("who is late is told what became of a question that %s", (_, history, more, text) => {
  const read = { state: "failed" as const, error: null, ...more, history: [question, ...history] };
  expect(whoAnswered(read, interrupt)).toBe(text);
});
