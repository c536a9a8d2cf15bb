/** The column `by` of the state table says what the access matrix says, which matrix.test.ts compares with the gateway. */
import { expect, test } from "vitest";
import { MOVE_NAMES, MOVES, type Move, type MoveName } from "../../../src/lifecycle/states.ts";
import { TIMERS } from "../../../src/lifecycle/timers.ts";
import { A2A } from "./matrix-a2a.ts";
import { REST } from "./matrix-rest.ts";

const CANCEL = "POST /v1/delegations/:id/cancel";
const REPLY = "POST /v1/leases/:lease_id/reply";

/** The requests that make each move. */
const REQUESTS: Partial<Record<MoveName, readonly string[]>> = {
  message: ["POST /v1/delegations/:id/messages"],
  lease: ["POST /v1/agents/:agent/leases"],
  heartbeat: ["POST /v1/leases/:lease_id/heartbeat"],
  progress: ["POST /v1/leases/:lease_id/heartbeat"],
  artifact: ["POST /v1/leases/:lease_id/artifacts"],
  interrupt: ["POST /v1/leases/:lease_id/interrupt"],
  await: ["POST /v1/leases/:lease_id/await"],
  hold: ["POST /v1/leases/:lease_id/interrupt"],
  park_question: ["POST /v1/leases/:lease_id/interrupt"],
  answer: ["POST /v1/delegations/:id/answer"],
  deny_budget: ["POST /v1/delegations/:id/answer"],
  hand_over: ["POST /v1/delegations/:id/answer"],
  vote: ["POST /v1/delegations/:id/answer"],
  use: ["POST /v1/leases/:lease_id/use"],
  release: ["POST /v1/leases/:lease_id/release"],
  give_up: ["POST /v1/leases/:lease_id/release"],
  // Every call of the holder makes it, if its lease has expired.
  reclaim: ["POST /v1/leases/:lease_id/heartbeat"],
  retry: [REPLY],
  complete: [REPLY],
  reject: [REPLY],
  fail: [REPLY],
  cancel: [CANCEL, REPLY],
  cascade: [CANCEL],
  redrive: ["POST /v1/delegations/:id/redrive"],
  push: ["CreateTaskPushNotificationConfig"],
};

/** The actors that a row of the matrix allows. An operator may use a lease in place of its holder. */
function actorsOf(request: string): string[] {
  const row = REST[request] ?? A2A[request];
  if (row === undefined) throw new Error(`no row for ${request}`);
  const columns = { delegator: row.alice, approver: row.approver, agent: row.scout, operator: row.operator };
  return Object.entries(columns)
    .filter(([actor, word]) => word === "ok" && !(actor === "operator" && row.scout === "ok"))
    .map(([actor]) => actor);
}

test.each(MOVE_NAMES)("%s is made by the actors that may request it", (name) => {
  const { by }: Move = MOVES[name];
  const principals = by.filter((actor) => actor !== "anyone" && actor !== "gateway" && actor !== "sweep");
  expect([...principals].sort()).toEqual([...new Set((REQUESTS[name] ?? []).flatMap(actorsOf))].sort());
});

test("the sweep may make the move of every timer", () => {
  for (const timer of TIMERS) {
    const move = MOVE_NAMES.find((name) => name === timer.does);
    if (move !== undefined) expect([move, MOVES[move].by]).toEqual([move, expect.arrayContaining(["sweep"])]);
  }
});
