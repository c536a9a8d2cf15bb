/** The most useful fields of an event, on one line. */
import { expect, test } from "vitest";
import { eventLine } from "../../../src/cli/show/event-line.ts";
import { wordsOf } from "../../../src/cli/show/story.ts";
import { localTime } from "../../../src/cli/show/time.ts";
import { eventWith } from "../../support/event.ts";

const same = (text: string): string => text;
const COLOURLESS = { red: same, green: same, yellow: same, bold: same, dim: same, inverse: same };

const again = localTime("2026-01-01T10:00:05.000Z").split(" ")[1];
/** An event of a delegation that is queued again. */
const WAITING = {
  id: "1-0",
  seq: 3,
  state: "submitted",
  retry_at: "2026-01-01T10:00:05.000Z",
};

test("a release says why, and when it goes on", () => {
  const reason = "the A2A server\ncannot be reached";
  const line = eventLine(eventWith({ ...WAITING, status: "released", reason }), COLOURLESS);
  expect(line).toContain(`released not before ${again} (the A2A server cannot be reached)`);
});

test("a next attempt says why the last one failed", () => {
  const error = {
    ...{ code: "command_failed", message: "exit status 75\nno disk", category: "UPSTREAM" },
    ...{ retryable: true, recovery: "Try again." },
  };
  const line = eventLine(eventWith({ ...WAITING, status: "retrying", error }), COLOURLESS);
  expect(line).toContain(`retrying attempt 2 not before ${again} (command_failed: exit status 75 no disk)`);
});

test("an answer says by whom, how it was decided, and how it begins", () => {
  const answered = { ...WAITING, status: "answered", by: "approver:ann" };
  const said = eventWith({ ...answered, decision: "approve", answer_preview: "but\ngently" });
  const line = eventLine(said, COLOURLESS);
  expect(line).toContain('answered by approver:ann approve "but gently"');
  expect(eventLine(eventWith({ ...answered, redacted: true }), COLOURLESS)).toContain(
    "answered by approver:ann (secret)",
  );
});

test("an approval says what it changes, how many there are, whose it voids, and last by whom", () => {
  const votes = [{ by: "approver:bob", at: WAITING.retry_at }];
  const vote = {
    ...{ ...WAITING, status: "voted", interrupt_id: "int_1", by: "approver:bob", via: "rest" },
    ...{ decision: "approve", needed: 2, votes, answers: {} },
  };
  expect(eventLine(eventWith(vote), COLOURLESS)).toMatch(/ {2}voted approve, 1 of 2 by approver:bob$/);
  const changes = { r: { changes: [{ path: ["replicas"], from: 3, to: 5 }], total: 1 } };
  const voiding = { ...vote, changes, voided: ["approver:ann"] };
  expect(eventLine(eventWith(voiding), COLOURLESS)).toContain(
    "voted approve, replicas 3 → 5, 1 of 2 (voids approver:ann) by approver:bob",
  );
});

test("the answer or approval of an option, and of several requests, says what was said", () => {
  const stories = (event: Parameters<typeof eventLine>[0]) => [
    eventLine(event, COLOURLESS),
    event.type === "DELEGATION_STATUS" ? wordsOf(event, 0) : "",
  ];
  const vote = {
    ...{ ...WAITING, status: "voted", interrupt_id: "int_1", by: "approver:bob", needed: 2 },
    votes: [{ by: "approver:bob", at: WAITING.retry_at }],
  };
  const option = { answer_preview: "staging", answers: { r: { answer_preview: "staging" } } };
  expect(stories(eventWith({ ...vote, ...option }))).toEqual([
    expect.stringMatching(/ {2}voted "staging", 1 of 2 by approver:bob$/),
    'approver:bob voted: "staging", 1 of 2',
  ]);
  const answers = { host: { answer_preview: "db1" }, a: { decision: "approve" }, b: { decision: "deny" } };
  const changes = { a: { changes: [{ path: ["replicas"], from: 3, to: 5 }], total: 1 } };
  const what = 'host: "db1"; a: approve, replicas 3 → 5; b: deny';
  expect(stories(eventWith({ ...vote, answers, changes }))).toEqual([
    expect.stringContaining(`voted ${what}, 1 of 2 by`),
    `approver:bob voted: ${what}, 1 of 2`,
  ]);
  const answered = { ...WAITING, status: "answered", by: "approver:ann", answers, changes };
  expect(stories(eventWith(answered))).toEqual([
    expect.stringContaining(`answered by approver:ann ${what}`),
    `approver:ann answered: ${what}`,
  ]);
  const commented = { decision: "approve", answer_preview: "gently", answers: {} };
  expect(stories(eventWith({ ...vote, ...commented }))).toEqual([
    expect.stringContaining('voted approve, 1 of 2 by approver:bob "gently"'),
    'approver:bob voted: approve, "gently", 1 of 2',
  ]);
});

test("the end of a question without enough approvals says how many there were", () => {
  const expired = {
    ...{ ...WAITING, type: "DELEGATION_FAILED", state: "failed", interrupt_id: "int_1", needed: 2 },
    votes: [{ by: "approver:ann", at: WAITING.retry_at }],
    error: {
      ...{
        code: "interrupt_expired",
        message: "The question was not answered in time.",
        category: "TIMEOUT",
      },
      ...{ retryable: false, recovery: "Delegate it again." },
    },
  };
  expect(eventLine(eventWith(expired), COLOURLESS)).toContain(
    "failed interrupt_expired: 1 of 2 approvals: approver:ann",
  );
});

test("a question names the action that it proposes, bounded", () => {
  const request = {
    ...{ request_id: "r", message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "Go?" }] } },
    action: { name: "deploy", arguments: { host: "db1", text: "x".repeat(1000) } },
  };
  const interrupt = {
    ...{ id: "int_1", kind: "input", requests: [request] },
    ...{ raised_at: WAITING.retry_at, expires_at: WAITING.retry_at },
  };
  const asks = eventWith({ ...WAITING, state: "input_required", status: "interrupted", interrupt });
  const line = eventLine(asks, COLOURLESS);
  expect(line).toContain('asks "Go?" [deploy {"host":"db1","text":"xxx');
  expect(line.length).toBeLessThan(350);
});

test("a question says whether the agent asks, or the broker", () => {
  const requests = [
    { request_id: "r", message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "More?" }] } },
  ];
  const asked = (id: string) =>
    eventWith({
      ...{ id: "1-0", seq: 3, state: "input_required", status: "interrupted" },
      interrupt: { id, kind: "input", requests, raised_at: WAITING.retry_at, expires_at: WAITING.retry_at },
    });
  expect(eventLine(asked("int_budget_3"), COLOURLESS)).toContain('  the broker asks "More?"');
  expect(eventLine(asked("int_5f3a"), COLOURLESS)).toContain('  asks "More?"');
});
