/** The order where the console does not show everything: what needs somebody first. */
import { expect, test } from "vitest";
import type { ListedDelegation } from "../../src/console/data/listed.ts";
import { agentsByNeed, byNeed, MANY } from "../../src/console/live/need.ts";
import type { Agent } from "../../src/schema/agent.ts";

const at = (minute: number): string => `2026-01-01T12:${String(minute).padStart(2, "0")}:00.000Z`;

const listed = (id: string, fields: Partial<ListedDelegation>): { readonly value: ListedDelegation } => ({
  value: {
    ...{ id, state: "submitted", version: 1, target: "scout", delegator: "caller:alice", task_preview: id },
    ...{ created_at: at(0), updated_at: at(0), not_before_at: null, attempt: 1 },
    ...{ progress: null, lease: null, interrupt: null, error: null, finished_at: null },
    ...fields,
  },
});

const question = (minute: number) => ({
  ...{ id: `int_${minute}`, kind: "input" as const, requests: [] },
  ...{ raised_at: at(0), expires_at: at(minute) },
});

test("within an agent, questions come first by their expiry, then work in progress, then the queue, oldest first", () => {
  const delegations = [
    listed("new", { created_at: at(9) }),
    listed("later", { created_at: at(1), not_before_at: at(30) }),
    listed("old", { created_at: at(2) }),
    listed("works, new", { state: "working", created_at: at(8) }),
    listed("asks, patient", { state: "input_required", created_at: at(1), interrupt: question(50) }),
    listed("ended", { state: "completed", created_at: at(7), finished_at: at(9) }),
    listed("works, old", { state: "working", created_at: at(3) }),
    listed("asks, urgent", { state: "auth_required", created_at: at(5), interrupt: question(40) }),
  ];
  expect(byNeed(delegations).map(({ value }) => value.id)).toEqual([
    "asks, urgent",
    "asks, patient",
    "works, old",
    "ended",
    "works, new",
    "old",
    "new",
    "later",
  ]);
});

const NO_WORK = { waiting: 0, delayed: 0, working: 0, interrupted: 0 };
const agent = (
  name: string,
  seen: "online" | "offline" | "never",
  counts: Partial<Agent["counts"]> = {},
): Agent => ({
  ...{ name, description: "", skills: [], version: "1", delivery: { mode: "poll" }, paused: false },
  ...{ approvals: "any", risks: [], created_at: at(0), updated_at: at(0), a2a_card_url: "" },
  presence: {
    state: seen === "online" ? "online" : "offline",
    last_seen_at: seen === "never" ? null : at(1),
    pollers: seen === "online" ? 1 : 0,
  },
  counts: { ...NO_WORK, ...counts },
});

test("many agents are in the order of need, and a few in that of their names", () => {
  const some = [
    agent("a-never", "never"),
    agent("b-gone", "offline"),
    agent("c-polls", "online"),
    agent("d-delayed", "never", { delayed: 1 }),
    agent("e-queue", "never", { waiting: 1 }),
    agent("f-works", "offline", { working: 1, waiting: 9 }),
    agent("g-asks", "offline", { interrupted: 1 }),
  ];
  const others = Array.from({ length: MANY }, (_, n) => agent(`z-${n}`, "never"));
  const names = (agents: readonly Agent[]) => agents.map(({ name }) => name);
  expect(names(agentsByNeed(some))).toEqual(names(some));
  expect(names(agentsByNeed([...some, ...others])).slice(0, 8)).toEqual([
    "g-asks",
    "f-works",
    "d-delayed",
    "e-queue",
    "c-polls",
    "b-gone",
    "a-never",
    "z-0",
  ]);
});
