/** Which questions are equal, so that they may be decided together. */
import { expect, test } from "vitest";
import { groupsOf } from "../../src/console/inbox/equal.ts";
import type { Asked } from "../../src/console/needs/rows.ts";
import type { Interrupt } from "../../src/schema/delegation.ts";
import { hasVoted } from "../../src/schema/vote-text.ts";

const READER = "approver:ann";
const AT = "2026-01-01T12:00:00.000Z";
const MESSAGE: Interrupt["requests"][number]["message"] = {
  messageId: "m",
  role: "ROLE_AGENT",
  parts: [{ text: "May I?" }],
};

let number = 0;
function asked(request: object, { target = "scout", kind = "input" as Interrupt["kind"] } = {}): Asked {
  number += 1;
  const id = `int_${number}`;
  const interrupt: Interrupt = {
    ...{ id, kind, raised_at: AT, expires_at: AT },
    requests: [{ request_id: "default", message: MESSAGE, ...request }],
  };
  return {
    id,
    listed: {
      ...{ id: `dlg_${number}`, state: "input_required", version: 1, target, delegator: "caller:alice" },
      ...{ task_preview: id, created_at: AT, updated_at: AT, not_before_at: null, attempt: 1 },
      ...{ progress: null, lease: null, interrupt, error: null, finished_at: null },
    },
  };
}

const isOwn = ({ interrupt }: Asked["listed"]) => interrupt !== null && hasVoted(interrupt, READER);
const sizes = (...rows: Asked[]): number[] => groupsOf(rows, isOwn).map(({ members }) => members.length);
const deploy = (more: object = {}) => ({ name: "deploy", arguments: { to: "eu", hosts: [1, 2], ...more } });

test("questions are equal by agent, action and arguments, in any order of the members and whatever is said of them", () => {
  const other = { action: { arguments: { hosts: [1, 2], to: "eu" }, name: "deploy" } };
  const said = { message: { ...MESSAGE, parts: [{ text: "Please?" }] } };
  expect(sizes(asked({ action: deploy() }), asked(other), asked({ action: deploy(), ...said }))).toEqual([3]);
});

test.each([
  ["another argument", { action: deploy({ to: "us" }) }, {}],
  ["one more argument", { action: deploy({ dry: false }) }, {}],
  ["the order of a list", { action: deploy({ hosts: [2, 1] }) }, {}],
  ["a text for a number", { action: deploy({ hosts: ["1", 2] }) }, {}],
  ["a list for an object", { action: deploy({ hosts: { 0: 1, 1: 2 } }) }, {}],
  ["another action", { action: { ...deploy(), name: "deploy " } }, {}],
  ["another agent", { action: deploy() }, { target: "scout2" }],
  ["an edit that is possible", { action: deploy(), edit: true }, {}],
  ["other answers", { action: deploy(), options: ["approve", "deny", "later"] }, {}],
  ["no action", {}, {}],
  ["access", { action: deploy() }, { kind: "auth" as const }],
])("%s makes another question", (_, request, more) => {
  expect(sizes(asked({ action: deploy() }), asked(request, more))).toEqual([1, 1]);
});

test("the same words, or the same form, are no reason to answer them together", () => {
  expect(sizes(asked({}), asked({}))).toEqual([1, 1]);
  const form = { schema: { type: "object", properties: { a: {} } } };
  expect(sizes(asked(form), asked(form))).toEqual([1, 1]);
});

test("groups stand in the order of their first questions", () => {
  const [a, b] = [asked({ action: deploy() }), asked({ action: deploy({ to: "us" }) })];
  const again = asked({ action: deploy() });
  expect(groupsOf([a, b, again], isOwn).map(({ members }) => members.map(({ id }) => id))).toEqual([
    [a.id, again.id],
    [b.id],
  ]);
});

test("what the reader has approved is decided apart from what waits for the reader", () => {
  const votes = { needed: 2, given: [{ by: "approver:ann" as const, at: AT }] };
  const own = asked({ action: deploy() });
  if (own.listed.interrupt) own.listed.interrupt.votes = votes;
  const others = [asked({ action: deploy() }), asked({ action: deploy() })] as const;
  expect(sizes(own, ...others)).toEqual([1, 2]);
});
