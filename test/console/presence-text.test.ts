/** The words for an agent's presence. */
import { expect, test } from "vitest";
import { type PresenceAgent, presenceText } from "../../src/console/live/presence-text.ts";

const NOW = Date.parse("2026-01-01T12:00:00Z");
const MIN = 60_000;

interface Given extends Partial<PresenceAgent["counts"]> {
  readonly state?: PresenceAgent["presence"]["state"];
  readonly pollers?: number;
  /** Minutes ago; null if never. */
  readonly seen?: number | null;
  readonly paused?: boolean;
  readonly push?: boolean;
  readonly most?: number;
  readonly pausedWorkers?: number;
}

function agent({
  state = "online",
  pollers = 0,
  seen = 0,
  paused = false,
  push,
  most,
  ...rest
}: Given): PresenceAgent {
  const { pausedWorkers, ...counts } = rest;
  const until = new Date(NOW + 4 * MIN).toISOString();
  return {
    paused,
    delivery: push ? { mode: "push", url: "http://a.example" } : { mode: "poll" },
    limits: {
      ...{ max_attempts: 3, lease_seconds: 60, max_waiting: 10_000, interrupt_ttl_seconds: 60 },
      max_working: most ?? null,
    },
    presence: {
      ...{ state, pollers },
      last_seen_at: seen === null ? null : new Date(NOW - seen * MIN).toISOString(),
      ...(pausedWorkers && { paused: { workers: pausedWorkers, until, reason: "not signed in" } }),
    },
    counts: { waiting: 0, delayed: 0, working: 0, interrupted: 0, awaiting: 0, ...counts },
  };
}

const OFF = { state: "offline", seen: 51 } as const;
const TRY = "2 workers are paused: not signed in, next try in 4 min";

test("the limit counts also for a reader who sees no settings", () => {
  const given = agent({ working: 2, waiting: 5, pollers: 1 });
  const { who, sign } = presenceText(
    { ...given, limits: undefined, slots: { busy: 2, free: 0, most: 2 } },
    NOW,
  );
  expect([sign, who]).toEqual(["busy", "at its limit (2 of 2)"]);
});

test.each<[Given, string]>([
  [{ pollers: 1 }, "online: 1 worker free"],
  [{ pollers: 3, working: 2 }, "online: 3 workers free"],
  [{ pollers: 1, waiting: 2 }, "online: 1 worker free, 2 wait"],
  // It asks now and then, or has just left: nobody would take work at once.
  [{}, "recent: worker seen just now"],
  [{ waiting: 1 }, "busy: worker seen just now, 1 waits"],
  [{ working: 1 }, "working: all busy (1 working)"],
  [{ working: 1, waiting: 38 }, "busy: all busy (1 working), 38 wait"],
  [{ working: 1, waiting: 1, state: "stale", seen: 5 }, "busy: all busy (1 working), 1 waits"],
  [{ working: 2, most: 2, pollers: 4 }, "working: at its limit (2 of 2)"],
  [{ working: 2, most: 2, pollers: 4, waiting: 1200 }, "busy: at its limit (2 of 2), 1,200 wait"],
  [{ ...OFF }, "unseen: away, last seen 51 min ago"],
  [{ ...OFF, delayed: 3 }, "unseen: away, last seen 51 min ago"],
  [{ ...OFF, seen: null }, "unseen: never seen"],
  [{ ...OFF, waiting: 38 }, "alarm: no worker, 38 wait"],
  [{ ...OFF, seen: null, waiting: 38 }, "alarm: no worker, 38 wait"],
  [{ paused: true, pollers: 1 }, "paused: paused"],
  [{ paused: true, pollers: 0, working: 1, waiting: 37 }, "paused: paused, 37 wait"],
  [{ paused: true, ...OFF, waiting: 37 }, "paused: paused, 37 wait"],
  [{ pausedWorkers: 2, waiting: 5 }, `alarm: no free worker, 5 wait; ${TRY}`],
  [{ pausedWorkers: 2, pollers: 1, waiting: 5 }, `online: 1 worker free, 5 wait; ${TRY}`],
  [{ push: true }, "online: reachable"],
  [{ push: true, ...OFF, waiting: 4 }, "alarm: cannot be reached, 4 wait"],
  [{ push: true, ...OFF, working: 1 }, "unseen: away, last seen 51 min ago"],
])("%j", (given, expected) => {
  const { sign, text } = presenceText(agent(given), NOW);
  expect(`${sign}: ${text}`).toBe(expected);
});
