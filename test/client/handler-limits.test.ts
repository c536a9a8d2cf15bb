/** When a handler takes too long, and what counts as a sign of life; when a process was blocked. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HandlerLimits } from "../../src/client/handler-limits.ts";
import { LoopWatch } from "../../src/client/loop-watch.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function limitsOf(timeoutSeconds: number | undefined, idleTimeoutSeconds: number | undefined) {
  const reached: string[] = [];
  const limits = new HandlerLimits({
    ...{ timeoutSeconds, idleTimeoutSeconds },
    onReached: ({ limit, seconds }) => reached.push(`${limit} ${seconds}`),
  });
  return { limits, reached };
}

test("each sign of life puts off the idle timeout, but not the other one", () => {
  const { limits, reached } = limitsOf(100, 10);
  for (let second = 0; second < 99; second += 9) {
    vi.advanceTimersByTime(9_000);
    limits.touch();
  }
  expect(reached).toEqual([]);
  vi.advanceTimersByTime(1_000);
  expect(reached).toEqual(["timeout 100"]);
  limits.touch();
  vi.advanceTimersByTime(100_000);
  expect(reached).toEqual(["timeout 100"]);
});

test.each(["resolves", "rejects"])(
  "a handler that waits for a call that %s is not idle until then",
  async (how) => {
    const { limits, reached } = limitsOf(undefined, 10);
    let end = (): void => undefined;
    const promise = new Promise<void>((resolve, reject) => {
      end = how === "resolves" ? resolve : () => reject(new Error("refused"));
    });
    expect(limits.sign(promise)).toBe(promise);
    const other = limits.sign(Promise.resolve());
    await other;
    limits.touch();
    await vi.advanceTimersByTimeAsync(60_000);
    end();
    await promise.catch(() => undefined);
    // The end of the call is a sign of life.
    await vi.advanceTimersByTimeAsync(9_000);
    expect(reached).toEqual([]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reached).toEqual(["idle 10"]);
  },
);

test("a handler that is done reaches no limit", () => {
  const { limits, reached } = limitsOf(5, 5);
  limits.end();
  vi.advanceTimersByTime(60_000);
  expect(reached).toEqual([]);
});

test("a block is noticed, also before the timer notices it, and is forgotten after a while", () => {
  let now = 0;
  const watch = new LoopWatch(() => now);
  expect(watch.blockedWithin(60_000)).toBeUndefined();
  watch.start();
  now = 1_900;
  expect(watch.blockedWithin(60_000)).toBeUndefined();
  now += 45_000;
  expect(watch.blockedWithin(60_000)).toBe(44_000);
  now += 500;
  expect(watch.blockedWithin(60_000)).toBe(44_000);
  watch.stop();
  now += 60_000;
  expect(watch.blockedWithin(60_000)).toBeUndefined();
});
