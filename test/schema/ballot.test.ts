/** What people agree on, and when an approval would void those of others. */
import { expect, test } from "vitest";
import { ballotAnswers, voidedBy } from "../../src/schema/ballot.ts";
import { isDeniable } from "../../src/schema/choices.ts";
import type { Interrupt } from "../../src/schema/delegation.ts";
import type { AnswerInput } from "../../src/schema/interrupt.ts";
import { type VotedAnswers, votedAnswersText, votedOtherwise } from "../../src/schema/voted-answers.ts";

const AT = "2026-01-31T09:00:00.000Z";
const ANN = { by: "approver:ann", at: AT };

function asked(answers: VotedAnswers, given = [ANN]): Interrupt {
  const requests = Object.keys(answers).map((request_id) => ({
    request_id,
    message: { messageId: request_id, role: "ROLE_AGENT" as const, parts: [{ text: "May I?" }] },
    action: { name: "deploy", arguments: { host: "db1" } },
  }));
  const open = { id: "int_1", kind: "input" as const, raised_at: AT, expires_at: AT };
  return { ...open, requests, votes: { needed: 2, given, answers } };
}

const APPROVE = { decision: "approve" } as const;
const DENY = { decision: "deny" } as const;

test("others approved something else if they denied a request, chose a text or changed arguments", () => {
  const textOf = (answers: VotedAnswers, given = [ANN]) => {
    const interrupt = asked(answers, given);
    const voted = votedOtherwise(interrupt);
    return voted && votedAnswersText(interrupt, voted);
  };
  expect(textOf({ a: APPROVE, b: APPROVE })).toBeUndefined();
  expect(textOf({ a: APPROVE, b: DENY })).toBe("b: deny");
  expect(textOf({ a: { text: "later" } })).toBe("later");
  expect(textOf({ a: { ...APPROVE, data: { host: "db2" } } })).toBe('host "db1" → "db2"');
  expect(textOf({ a: DENY, b: APPROVE }, [])).toBeUndefined();
});

test.each<[string, VotedAnswers, Record<string, AnswerInput>, boolean]>([
  ["the same", { a: APPROVE }, { a: APPROVE }, false],
  ["with a comment", { a: APPROVE }, { a: { ...APPROVE, text: "well" } }, false],
  ["with the arguments as proposed", { a: APPROVE }, { a: { ...APPROVE, data: { host: "db1" } } }, false],
  ["other arguments", { a: APPROVE }, { a: { ...APPROVE, data: { host: "db2" } } }, true],
  ["the proposed ones", { a: { ...APPROVE, data: { host: "db2" } } }, { a: APPROVE }, true],
  ["all, of which one was denied", { a: APPROVE, b: DENY }, { a: APPROVE, b: APPROVE }, true],
  ["nothing", { a: APPROVE }, { a: DENY }, false],
])("an approval of %s", (_, answers, inputs, voids) => {
  expect(voidedBy(asked(answers), Object.entries(inputs))).toEqual(voids ? [ANN] : []);
});

test("a question without an approval can be answered if each request that can be approved can be denied", () => {
  const message = { messageId: "m", role: "ROLE_AGENT" as const, parts: [{ text: "When?" }] };
  const deniable = (...all: object[]) =>
    isDeniable({ kind: "input", requests: all.map((one) => ({ request_id: "a", message, ...one })) });
  expect(deniable({ action: { name: "deploy", arguments: {} } }, {})).toBe(true);
  expect(deniable({ options: ["approve", "deny"] }, { options: ["red"] })).toBe(true);
  expect(deniable({ options: ["approve", "staging"] }, {})).toBe(false);
});

const LATER = { options: ["approve", "deny", "later", "sooner"], schema: {} };
const chosen = (input: AnswerInput, more: object) => {
  const message = { messageId: "m", role: "ROLE_AGENT" as const, parts: [{ text: "When?" }] };
  return ballotAnswers({ requests: [{ request_id: "a", message, ...more }] }, [["a", input]]).a;
};

test.each<[string, AnswerInput, VotedAnswers[string]]>([
  ["data", { data: { n: 1 } }, { data: { n: 1 } }],
  ["data with a comment", { data: { n: 1 }, text: "fine" }, { data: { n: 1 } }],
  ["data with approve as a comment", { data: { n: 1 }, text: "approve" }, { data: { n: 1 } }],
  ["data and an option", { data: { n: 1 }, text: "later" }, { text: "later", data: { n: 1 } }],
  ["an option as text", { text: "later" }, { text: "later" }],
  ["an option as data", { data: "later" }, { text: "later" }],
  ["an option as data, with a comment", { data: "later", text: "fine" }, { text: "later" }],
  ["an option twice", { data: "later", text: "later" }, { text: "later" }],
  ["two options", { data: "later", text: "sooner" }, { text: "sooner", data: "later" }],
  ["a decision's name as data", { data: "approve" }, { data: "approve" }],
  ["data that is no option", { data: "other" }, { data: "other" }],
  [
    "a decision with data and a comment",
    { decision: "approve", data: 1, text: "later" },
    { decision: "approve", data: 1 },
  ],
])("the ballot of %s", (_, input, ballot) => {
  expect(chosen(input, LATER)).toEqual(ballot);
});
