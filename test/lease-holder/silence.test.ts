/** A clock that jumps: the holder's trust in its lease ends by the clock that shows more, and no jump lengthens it. */
import { expect, test } from "vitest";
import { type Moment, Silence } from "../../src/lease-holder/silence.ts";

const LEASE_MS = 60_000;
const TICK_MS = 1_000;
const HOUR_MS = 3_600_000;

interface Jump {
  readonly what: string;
  readonly wall: number;
  readonly monotonic: number;
  /** Whether the process did not run, so that its heartbeat is sent anew. */
  readonly pauses: boolean;
  /** How long the handler still works on without an answer. */
  readonly stopsAfterMs: number;
}

// The broker answered 30 s before the jump.
const JUMPS: readonly Jump[] = [
  { what: "none", wall: 0, monotonic: 0, pauses: false, stopsAfterMs: 90_000 },
  { what: "the wall clock, an hour forward", wall: HOUR_MS, monotonic: 0, pauses: true, stopsAfterMs: 5_000 },
  { what: "the wall clock, an hour back", wall: -HOUR_MS, monotonic: 0, pauses: false, stopsAfterMs: 90_000 },
  {
    what: "the monotonic clock, an hour forward",
    wall: 0,
    monotonic: HOUR_MS,
    pauses: true,
    stopsAfterMs: 5_000,
  },
  { what: "both, an hour forward", wall: HOUR_MS, monotonic: HOUR_MS, pauses: true, stopsAfterMs: 5_000 },
  {
    what: "forward, and the other one back",
    wall: -HOUR_MS,
    monotonic: HOUR_MS,
    pauses: true,
    stopsAfterMs: 5_000,
  },
  { what: "the wall clock, 20 s forward", wall: 20_000, monotonic: 0, pauses: true, stopsAfterMs: 70_000 },
  { what: "the wall clock, 20 s back", wall: -20_000, monotonic: 0, pauses: false, stopsAfterMs: 90_000 },
];

test.each(JUMPS)("a jump of the clock: $what", ({ wall, monotonic, pauses, stopsAfterMs }) => {
  let at: Moment = { wall: 1_800_000_000_000, monotonic: 5_000 };
  const silence = new Silence(LEASE_MS, at);
  const pass = (ms: number, jump = { wall: 0, monotonic: 0 }) => {
    at = { wall: at.wall + ms + jump.wall, monotonic: at.monotonic + ms + jump.monotonic };
    return silence.tick(at, TICK_MS);
  };
  const passAll = (ms: number) => {
    for (let passed = 0; passed < ms; passed += TICK_MS) expect(pass(TICK_MS)).toBe(false);
  };
  passAll(30_000);
  expect([pass(0, { wall, monotonic }), silence.isTooLong(at)]).toEqual([pauses, false]);
  passAll(stopsAfterMs);
  expect(silence.isTooLong(at)).toBe(false);
  passAll(TICK_MS);
  expect(silence.isTooLong(at)).toBe(true);

  // An answer ends the silence, whatever the clocks have done, and then twice the lease counts again.
  silence.answered(at);
  passAll(2 * LEASE_MS);
  expect(silence.isTooLong(at)).toBe(false);
  passAll(TICK_MS);
  expect(silence.isTooLong(at)).toBe(true);
});
