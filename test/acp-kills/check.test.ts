/** Each rule of the check finds a run that breaks it, and nothing in one that does not. */
import { expect, test } from "vitest";
import { check, type Seen } from "./check.ts";

const first = { text: "Run it?", decision: "approve" };
const again = { text: "The call may already have run. Run it?", decision: "approve" };
const clean: Seen = {
  id: "dlg_1",
  tag: "task-1",
  state: "completed",
  answer: "ran task-1",
  ends: 1,
  questions: [first],
  used: 1,
  ran: 1,
};

test.each([
  ["a call that ran once", {}],
  [
    "a call that was denied",
    { answer: "denied task-1", ran: 0, questions: [{ ...first, decision: "deny" }] },
  ],
  ["a call that was asked for again", { questions: [first, again], used: 2, ran: 2 }],
  ["a first approval that had no effect", { questions: [first, again], used: 2 }],
] satisfies [string, Partial<Seen>][])("%s is clean", (_, more) => {
  expect(check([{ ...clean, ...more }])).toEqual([]);
});

test.each([
  ["another end", { state: "failed" }, "failed, with 1"],
  ["two final events", { ends: 2 }, "2 final events"],
  ["an approval that was handed over twice", { ran: 2, questions: [first, again] }, "2 times, but 1 answers"],
  ["a call that ran unapproved", { ran: 2, used: 2 }, "2 times, but 1 questions"],
  ["an answer without its call", { ran: 0 }, "ran 0 times"],
  ["another answer", { answer: "" }, "answered ''"],
  ["a question that hides that the call may have run", { questions: [first, first] }, "question 2 hides"],
  ["a question that says so for no reason", { questions: [again] }, "question 1 says"],
  [
    "a question without an answer",
    { questions: [first, { ...again, decision: undefined }] },
    "has no answer",
  ],
] satisfies [string, Partial<Seen>, string][])("%s is found", (_, more, found) => {
  expect(check([{ ...clean, ...more }]).join("\n")).toContain(found);
});
