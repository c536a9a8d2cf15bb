/** How events change what the lists show of a lease. */
import { expect, test } from "vitest";
import { afterEvent, type ListedDelegation } from "../../src/console/data/listed.ts";
import { eventWith } from "../support/event.ts";

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString();

const working: ListedDelegation = {
  ...{ id: "d", state: "working", version: 2, target: "scout", delegator: "caller:alice", task_preview: "" },
  ...{
    created_at: at(0),
    updated_at: at(0),
    not_before_at: null,
    attempt: 1,
    lease: { expires_at: at(60), ms: 60_000 },
  },
  ...{ progress: null, interrupt: null, error: null, finished_at: null },
};

const event = (seq: number, second: number, status: string, more = {}) =>
  eventWith({ seq, at: at(second), state: "working", status, ...more });

test("an outage of the broker puts off the end of a lease, and a reclaim gives it back", () => {
  const away = event(3, 100, "broker_away", { until: at(99), expires_at: at(159), attempt: 1 });
  const after = afterEvent(working, away);
  expect(after?.lease).toEqual({ expires_at: at(159), ms: 60_000 });
  expect(after?.updated_at).toBe(at(100));
  const lapse = event(4, 160, "lease_expired", { state: "submitted", attempt: 2 });
  const lapsed = afterEvent(after ?? undefined, lapse);
  expect(lapsed?.lease).toBeNull();
  const reclaim = event(5, 161, "reclaimed", { attempt: 1, worker_id: "w", expires_at: at(221) });
  const reclaimed = afterEvent(lapsed ?? undefined, reclaim);
  expect(reclaimed).toMatchObject({ attempt: 1, lease: { expires_at: at(221), ms: 60_000 } });
  const progress = event(6, 200, "progress", { progress: { done: 1 } });
  expect(afterEvent(reclaimed ?? undefined, progress)?.lease?.expires_at).toBe(at(260));
});
