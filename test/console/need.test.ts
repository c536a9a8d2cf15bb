/** The order of delegations and of agents in the console: what needs somebody first. */
import { expect, test } from "vitest";
import type { Alarm } from "../../src/client/alarms.ts";
import type { ListedDelegation } from "../../src/console/data/listed.ts";
import { agentsByNeed, bySeverity } from "../../src/console/live/agents-by-need.ts";
import { byNeed } from "../../src/console/live/need.ts";
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

const NO_WORK = { waiting: 0, delayed: 0, working: 0, interrupted: 0, awaiting: 0 };

interface Given extends Partial<Omit<Agent, "counts" | "presence">> {
  readonly seen?: "free" | "busy" | "offline" | "never";
  readonly counts?: Partial<Agent["counts"]>;
  readonly presence?: Partial<Agent["presence"]>;
}

function agent(name: string, { seen = "free", counts, presence, ...more }: Given = {}): Agent {
  const isOnline = seen === "free" || seen === "busy";
  return {
    ...{ name, description: "", skills: [], version: "1", delivery: { mode: "poll" }, paused: false },
    ...{
      approvals: "any",
      tree_reads: "nodes",
      votes: null,
      risks: [],
      priority_ageing_seconds: null,
      serial_by: null,
      sticky_seconds: null,
      created_at: at(0),
      updated_at: at(0),
      a2a_card_url: "",
    },
    presence: {
      state: isOnline ? "online" : "offline",
      last_seen_at: seen === "never" ? null : at(1),
      pollers: seen === "free" ? 1 : 0,
      ...presence,
    },
    counts: { ...NO_WORK, ...counts },
    ...more,
  };
}

test("agents come in the order of need: alarms by how long work waits, then questions, queues, work, and idle ones", () => {
  const paused = { workers: 1, until: at(40), reason: "no credit" };
  const agents = [
    agent("a-never", { seen: "never" }),
    agent("b-gone", { seen: "offline" }),
    agent("c-paused", { paused: true }),
    agent("d-free"),
    agent("e-delayed", { seen: "never", counts: { delayed: 1 } }),
    agent("f-works", { counts: { working: 1 } }),
    agent("g-queue", { counts: { waiting: 3 } }),
    agent("h-asks", { seen: "offline", counts: { interrupted: 1, awaiting: 0 } }),
    agent("i-busy", { seen: "busy", counts: { working: 2, waiting: 52 } }),
    agent("j-failing", { presence: { paused } }),
    agent("k-paused", { paused: true, counts: { waiting: 1 }, oldest_waiting_at: at(20) }),
    agent("l-nobody", { seen: "never", counts: { waiting: 1 }, oldest_waiting_at: at(10) }),
  ];
  const { agents: sorted, busy } = agentsByNeed(agents, Date.parse(at(30)));
  expect(sorted.map(({ name }) => name)).toEqual(agents.map(({ name }) => name).toReversed());
  // Those that are idle are folded.
  expect(sorted.slice(busy).map(({ name }) => name)).toEqual(["d-free", "c-paused", "b-gone", "a-never"]);
});

test("alarms that no time ends come before busy agents, the longest wait first", () => {
  const alarm = (kind: Alarm["kind"], since: string | null): Alarm => ({ kind, agent: "a", waits: 1, since });
  const alarms = [
    alarm("all_busy", at(1)),
    alarm("workers_paused", null),
    alarm("no_worker", null),
    alarm("paused", at(5)),
    alarm("unreachable", at(4)),
  ];
  expect(bySeverity(alarms).map(({ kind }) => kind)).toEqual([
    "unreachable",
    "paused",
    "no_worker",
    "workers_paused",
    "all_busy",
  ]);
});
