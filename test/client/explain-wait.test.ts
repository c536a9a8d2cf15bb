/** `explainWait`: why a delegation waits, in a sentence. */
import { expect, test } from "vitest";
import { retryAtOf } from "../../src/client/explain-wait.ts";
import { timeLeft } from "../../src/client/words.ts";
import { explainWait } from "../../src/index.ts";
import { eventWith } from "../support/event.ts";

const NOW = Date.parse("2026-01-01T12:00:00.000Z");
const WAITING = {
  state: "submitted",
  target: "scout",
  delegator: "caller:alice",
  not_before_at: null,
  interrupt: null,
} as const;
const SCOUT = {
  paused: false,
  presence: { state: "online", last_seen_at: "2026-01-01T11:59:59.000Z", pollers: 1 },
  counts: { waiting: 1, delayed: 0, working: 0, interrupted: 0, awaiting: 0 },
  delivery: { mode: "poll" },
} as const;
const LIMITS = {
  max_attempts: 3,
  lease_seconds: 60,
  max_working: null,
  max_waiting: 10_000,
  interrupt_ttl_seconds: 86_400,
};
const AWAY = { state: "offline", last_seen_at: "2025-12-30T12:00:00.000Z", pollers: 0 } as const;

test("time that is left is rounded", () => {
  const left = [86_399, 82_000, 3_599, 3_560, 90, 59, 12, -3].map((seconds) => timeLeft(seconds * 1000));
  expect(left).toEqual(["1 d", "23 h", "1 h", "59 min", "2 min", "59 s", "12 s", "0 s"]);
});

test("a priority that counts as higher is said where its place in the queue is", () => {
  expect(explainWait({ ...WAITING, effective_priority: 7 }, SCOUT, NOW)).toBe(
    "Waiting for a worker of scout, with priority 7 after this wait.",
  );
});

test("one that waits for its turn in its conversation says for whom, whatever its agent does", () => {
  const behind = "dlg_0_00000000000000000000000001";
  for (const agent of [undefined, SCOUT, { ...SCOUT, paused: true }])
    expect(explainWait({ ...WAITING, behind }, agent, NOW)).toBe(
      `Waiting for ${behind} of its conversation to end.`,
    );
});

test("each reason is a sentence", () => {
  const interrupt = {
    id: "int_1",
    kind: "input",
    requests: [],
    raised_at: "2026-01-01T11:00:00.000Z",
    expires_at: "2026-01-01T12:29:30.000Z",
  } as const;
  const of = (...given: Parameters<typeof explainWait>) => explainWait(given[0], given[1], NOW);
  expect([
    of({ ...WAITING, state: "working" }, SCOUT),
    of({ ...WAITING, state: "input_required", interrupt: { ...interrupt, requests: [] } }, SCOUT),
    of({ ...WAITING, not_before_at: "2026-01-01T12:00:12.000Z" }, SCOUT),
    of({ ...WAITING, retry_at: "2026-01-01T12:00:12.000Z" }, SCOUT),
    of({ ...WAITING, retry_at: "2026-01-01T11:59:59.000Z" }, SCOUT),
    of(WAITING, { ...SCOUT, paused: true }),
    of(WAITING, { ...SCOUT, presence: AWAY }),
    of(WAITING, { ...SCOUT, presence: { ...AWAY, last_seen_at: null } }),
    of(WAITING, { ...SCOUT, presence: AWAY, delivery: { mode: "push" } }),
    of(WAITING, { ...SCOUT, counts: { ...SCOUT.counts, waiting: 4 } }),
    of(WAITING, { ...SCOUT, limits: { ...LIMITS, max_working: 2 }, counts: { ...SCOUT.counts, working: 2 } }),
    of(WAITING, { ...SCOUT, presence: AWAY, counts: { ...SCOUT.counts, working: 2, waiting: 4 } }),
    of(WAITING),
  ]).toEqual([
    null,
    "Waiting for an answer from alice or an approver, 30 min left.",
    "It may start in 12 s, as requested.",
    "The next attempt may start in 12 s.",
    "Waiting for a worker of scout.",
    "scout is paused until the operator resumes it.",
    "scout has no worker (last seen 2 d ago).",
    "scout has no worker (never seen).",
    "scout cannot be reached (last seen 2 d ago).",
    "Waiting for a worker of scout; 3 more in its queue.",
    "scout is at its limit of 2 at once.",
    "No worker of scout is free (2 in progress); 3 more in its queue.",
    "Waiting for a worker of scout.",
  ]);
});

test("the newest event with a time of the next attempt counts", () => {
  const released = (seq: number, retry_at?: string) =>
    eventWith({ seq, state: "submitted", status: "released", retry_at });
  const [first, second] = ["2026-01-01T00:00:05.000Z", "2026-01-01T00:00:15.000Z"];
  const leased = eventWith({ seq: 4, state: "working", status: "leased" });
  expect(retryAtOf([released(2, first), released(3, second), leased])).toBe(second);
  expect(retryAtOf([released(2), leased])).toBeNull();
});

test("workers that pause are the reason if nobody else polls", () => {
  const paused = { workers: 2, until: "2026-01-01T12:04:00.000Z", reason: "not signed in" };
  const of = (pollers: number) =>
    explainWait(WAITING, { ...SCOUT, presence: { ...SCOUT.presence, pollers, paused } }, NOW);
  expect([of(0), of(1)]).toEqual([
    "Of scout, 2 workers are paused: not signed in, next try in 4 min.",
    "Waiting for a worker of scout.",
  ]);
});
