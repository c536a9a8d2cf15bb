/** What the console keeps of the questions that it showed. */
import { beforeEach, expect, test } from "vitest";
import type { ListedDelegation } from "../../src/console/data/listed.ts";
import { forgetAsked, lastAsked, rememberAsked } from "../../src/console/needs/last-asked.ts";
import type { State } from "../../src/schema/delegation.ts";
import { eventWith } from "../support/event.ts";

const AT = "2026-01-01T12:00:00.000Z";
const ID = "dlg_0_00000000000000000000000001";
const listed: ListedDelegation = {
  ...{ id: ID, state: "input_required", version: 2, target: "scout", delegator: "caller:alice" },
  ...{ task_preview: "", created_at: AT, updated_at: AT, not_before_at: null, attempt: 1 },
  ...{ progress: null, lease: null, error: null, finished_at: null },
  interrupt: { id: "int", kind: "input", requests: [], raised_at: AT, expires_at: AT },
};

const event = (state: State) => {
  const status = state === "submitted" ? "answered" : state === "input_required" ? "interrupted" : undefined;
  return eventWith({ delegation_id: ID, seq: 3, state, ...(status && { status }) });
};

beforeEach(() => {
  lastAsked.clear();
  rememberAsked(listed);
});

test("a question is forgotten when it is answered, and when its delegation is out of view", () => {
  forgetAsked(event("submitted"), { ...listed, state: "submitted", interrupt: null });
  expect(lastAsked.size).toBe(0);
  rememberAsked(listed);
  forgetAsked(event("canceled"), undefined);
  expect(lastAsked.size).toBe(0);
});

test("while it is open, or the next one is, it is kept", () => {
  forgetAsked(event("input_required"), undefined);
  forgetAsked(event("submitted"), listed);
  expect(lastAsked.size).toBe(1);
});
