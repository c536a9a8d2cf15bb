/** The form of an answer in the inbox: it voids the approvals of others only after it has said so. */
import { expect, test } from "vitest";
import { AnswerForm } from "../../../src/cli/inbox/answer-form.ts";
import type { Interrupt } from "../../../src/schema/delegation.ts";
import type { VotedAnswers } from "../../../src/schema/voted-answers.ts";

const AT = "2026-01-31T09:00:00.000Z";
const APPROVE = { decision: "approve" } as const;

function asked(answers: VotedAnswers): Interrupt {
  const requests = Object.keys(answers).map((request_id) => ({
    request_id,
    message: { messageId: request_id, role: "ROLE_AGENT" as const, parts: [{ text: "May I?" }] },
    action: { name: "deploy", arguments: { host: "db1" } },
    edit: true,
  }));
  const votes = { needed: 3, given: [{ by: "approver:ann", at: AT }], answers };
  return { id: "int_1", kind: "input", requests, raised_at: AT, expires_at: AT, votes };
}

const ENTER = { name: "enter", text: "" };

test("an approval of all requests asks before it voids one that denied one of them", () => {
  const form = new AnswerForm(asked({ a: APPROVE, b: { decision: "deny" } }), "answer", "approver:bob");
  form.field?.set("approve");
  expect(form.press(ENTER)).toBeUndefined();
  form.field?.set("approve");
  expect(form.press(ENTER)).toBeUndefined();
  expect(form.problems).toEqual([
    "This voids the approval of approver:ann (b: deny). Press Enter again to send it.",
  ]);
  expect(form.press(ENTER)).toBe("send");
});

test("other arguments ask before they void a plain approval, but not one's own", () => {
  const sent = (principal: string) => {
    const form = new AnswerForm(asked({ a: APPROVE }), "edit", principal);
    form.field?.set('{"host": "db2"}');
    return form.press(ENTER);
  };
  expect([sent("approver:bob"), sent("caller:ann")]).toEqual([undefined, "send"]);
});

test("who agrees adds a comment only to a decision, because a text beside an option or data alone is another answer", () => {
  const agreed = (answers: VotedAnswers, text: string) => {
    const form = new AnswerForm(asked(answers), "agree", "approver:bob");
    form.field?.set(text);
    return form.press(ENTER) === "send" ? form.answer() : form.problems;
  };
  const refused = ["A comment would make it another answer: delete the text."];
  expect(agreed({ a: { text: "staging" } }, "fine")).toEqual(refused);
  expect(agreed({ a: { data: { host: "db2" } } }, "fine")).toEqual(refused);
  expect(agreed({ a: { text: "staging" } }, "")).toEqual({ answers: { a: { text: "staging" } } });
  expect(agreed({ a: { text: "staging" }, b: APPROVE }, "fine")).toEqual({
    answers: { a: { text: "staging" }, b: { ...APPROVE, text: "fine" } },
  });
});

test("the same answer, and a denial, are sent at once", () => {
  for (const text of ["approve", "deny"]) {
    const form = new AnswerForm(asked({ a: APPROVE }), "answer", "approver:bob");
    form.field?.set(text);
    expect(form.press(ENTER)).toBe("send");
  }
});
