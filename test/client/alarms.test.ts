/** Which agents need attention, and why. */
import { expect, test } from "vitest";
import { alarmsOf } from "../../src/client/alarms.ts";
import { type Agent, agentSchema } from "../../src/schema/agent.ts";
import { AGENT } from "./stub-broker.ts";

const NOW = Date.parse("2026-01-01T12:00:00.000Z");
const ago = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString();

/** An agent with a worker that waits for work, unless the change says otherwise. */
function agent(change: Record<string, unknown>, counts: Partial<Agent["counts"]> = {}): Agent {
  return agentSchema.parse({
    ...AGENT,
    presence: { state: "online", last_seen_at: ago(1), pollers: 1 },
    ...change,
    counts: { waiting: 0, delayed: 0, working: 0, interrupted: 0, awaiting: 0, ...counts },
  });
}
const kinds = (...agents: Agent[]) => alarmsOf(agents, NOW).map(({ kind }) => kind);

const OFFLINE = { presence: { state: "offline", last_seen_at: null, pollers: 0 } };
const BUSY = { presence: { state: "online", last_seen_at: ago(1), pollers: 0 } };
const PUSH = { delivery: { mode: "push" } };

test.each<[string, Agent, string[]]>([
  ["nothing waits", agent(OFFLINE), []],
  ["only delayed work", agent(OFFLINE, { delayed: 3 }), []],
  ["a worker will take it", agent({}, { waiting: 50 }), []],
  ["nobody polls", agent(OFFLINE, { waiting: 1 }), ["no_worker"]],
  [
    "a worker holds a lease and has sent no heartbeat for a while",
    agent(OFFLINE, { waiting: 1, working: 1 }),
    [],
  ],
  [
    "a worker holds a lease, and the oldest waits for long",
    agent({ ...OFFLINE, oldest_waiting_at: ago(300) }, { waiting: 1, working: 1 }),
    ["all_busy"],
  ],
  ["its server cannot be reached", agent({ ...OFFLINE, ...PUSH }, { waiting: 1 }), ["unreachable"]],
  [
    "its server cannot be reached, and still works on something",
    agent({ ...OFFLINE, ...PUSH }, { waiting: 1, working: 1 }),
    ["unreachable"],
  ],
  ["it is paused", agent({ paused: true }, { waiting: 1 }), ["paused"]],
  ["busy, and little waits", agent(BUSY, { waiting: 9, working: 1 }), []],
  ["busy, and much waits", agent(BUSY, { waiting: 10, working: 1 }), ["all_busy"]],
  [
    "busy, and the oldest waits for long",
    agent({ ...BUSY, oldest_waiting_at: ago(300) }, { waiting: 1, working: 1 }),
    ["all_busy"],
  ],
  [
    "busy, and the oldest waits for less",
    agent({ ...BUSY, oldest_waiting_at: ago(299) }, { waiting: 1, working: 1 }),
    [],
  ],
  [
    "at its limit, although a worker waits",
    agent({ slots: { busy: 2, free: 0, most: 2 } }, { waiting: 10, working: 2 }),
    ["all_busy"],
  ],
  ["a push agent has no polls", agent({ ...BUSY, ...PUSH }, { waiting: 10, working: 1 }), []],
])("%s", (_name, one, expected) => {
  expect(kinds(one)).toEqual(expected);
});

test("paused workers are an alarm of their own, with the next try and the reason", () => {
  const paused = { workers: 1, until: ago(-60), reason: "no credit" };
  const presence = { state: "offline", last_seen_at: ago(90), pollers: 0, paused };
  const common = { agent: "scout", waits: 2, since: ago(20) };
  expect(alarmsOf([agent({ presence, oldest_waiting_at: ago(20) }, { waiting: 2 })], NOW)).toEqual([
    { kind: "no_worker", ...common },
    { kind: "workers_paused", ...common, until: ago(-60), reason: "no credit" },
  ]);
  expect(kinds(agent({ presence }))).toEqual(["workers_paused"]);
});
