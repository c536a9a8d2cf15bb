/** What the lines of agents and alarms in Live say. */
import { expect, test } from "vitest";
import type { Alarm } from "../../src/client/alarms.ts";
import { hourText, rowText, slotsOf } from "../../src/console/live/agent-words.ts";
import { alarmText } from "../../src/console/live/alarm-text.ts";
import { type Agent, agentSchema } from "../../src/schema/agent.ts";
import { AGENT } from "../client/stub-broker.ts";

const NOW = Date.parse("2026-01-01T12:00:00.000Z");
const ago = (minutes: number): string => new Date(NOW - minutes * 60_000).toISOString();

const PAUSED = { workers: 2, until: ago(-4), reason: "not signed in" };

test.each<[Partial<Alarm> & Pick<Alarm, "kind">, string]>([
  [{ kind: "no_worker" }, "no worker, 38 wait 51 min"],
  [{ kind: "no_worker", waits: 1, since: null }, "no worker, 1 waits"],
  [{ kind: "unreachable" }, "cannot be reached, 38 wait 51 min"],
  [{ kind: "paused", waits: 1200 }, "paused, 1,200 wait 51 min"],
  [{ kind: "all_busy" }, "all busy, 38 wait 51 min"],
  [{ kind: "workers_paused" }, "2 workers are paused: not signed in, next try in 4 min"],
])("the alarm %j", (given, expected) => {
  const alarm = { agent: "archivist", waits: 38, since: ago(51), ...given };
  expect(alarmText(alarm, PAUSED, NOW)).toBe(expected);
});

test("paused workers of an agent that was not read again are known by the alarm", () => {
  const alarm: Alarm = {
    kind: "workers_paused",
    agent: "a",
    waits: 0,
    since: null,
    until: ago(-2),
    reason: "no",
  };
  expect(alarmText(alarm, undefined, NOW)).toBe("a worker is paused: no, next try in 2 min");
});

const agent = (change: Record<string, unknown>): Agent => agentSchema.parse({ ...AGENT, ...change });
const counts = (change: Partial<Agent["counts"]>) => ({
  counts: { waiting: 0, delayed: 0, working: 0, interrupted: 0, awaiting: 0, ...change },
});

test.each([
  ["two of three workers are busy", { slots: { busy: 2, free: 1, most: null } }, { busy: 2, all: 3 }],
  ["the limit is beyond the workers", { slots: { busy: 2, free: 1, most: 40 } }, { busy: 2, all: 3 }],
  [
    "a push agent with a limit",
    { slots: { busy: 2, free: 0, most: 5 }, delivery: { mode: "push" } },
    { busy: 2, all: 5 },
  ],
  [
    "a push agent without one",
    { slots: { busy: 2, free: 0, most: null }, delivery: { mode: "push" } },
    { busy: 2, all: 2 },
  ],
  [
    "an older broker",
    { presence: { state: "online", last_seen_at: ago(0), pollers: 3 }, ...counts({ working: 1 }) },
    { busy: 1, all: 4 },
  ],
])("slots: %s", (_name, change, expected) => {
  expect(slotsOf(agent(change))).toEqual(expected);
});

const FIGURES = {
  ...{ agent: "scout", completed: 12, failed: 2, rejected: 1, canceled: 0, quarters: [] },
  costs: [{ currency: "USD", cost: 4.2 }],
};

test("the last hour in words has what went wrong, and each cost", () => {
  expect(hourText(FIGURES)).toBe("last hour 12 ok, 3 failed, 4.2 USD");
  expect(hourText({ ...FIGURES, completed: 0, failed: 0, rejected: 0, canceled: 2, costs: [] })).toBe(
    "last hour 0 ok, 2 canceled",
  );
});

test("the line of an agent says everything that it shows", () => {
  const busy = agent({
    ...counts({ working: 2, waiting: 38, interrupted: 1, awaiting: 0, delayed: 3 }),
    oldest_waiting_at: ago(51),
  });
  const presence = { sign: "busy" as const, who: "", text: "all busy (2 working), 38 wait" };
  expect(rowText(busy, presence, FIGURES, NOW)).toBe(
    "scout: all busy (2 working), 38 wait, 2 working, 1 asks, the oldest for 51 min, 3 delayed, last hour 12 ok, 3 failed, 4.2 USD",
  );
});
