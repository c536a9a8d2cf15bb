/** Backoff, time limits, and many callbacks on one signal. */
import { getEventListeners } from "node:events";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { backoffMs, sleep, TimeLimit } from "../../src/util/timing.ts";

describe("backoff", () => {
  test("doubles from a quarter of a second to 15 s, with jitter over half of it", () => {
    for (const [failures, ceiling] of [
      [0, 250],
      [1, 500],
      [4, 4000],
      [9, 15_000],
      [5000, 15_000],
    ] as const) {
      const delays = Array.from({ length: 200 }, () => backoffMs(failures));
      expect(Math.min(...delays)).toBeGreaterThanOrEqual(ceiling / 2);
      expect(Math.max(...delays)).toBeLessThanOrEqual(ceiling);
      expect(new Set(delays).size).toBeGreaterThan(100);
    }
  });

  test("is never shorter than Retry-After, and spreads many clients", () => {
    const delays = Array.from({ length: 200 }, () => backoffMs(0, 2000));
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(2000);
    expect(new Set(delays).size).toBeGreaterThan(100);
  });
});

describe("signals", () => {
  test("a signal has one listener for any number of callbacks, and unsubscribed ones are not called", async () => {
    const controller = new AbortController();
    const limits = Array.from({ length: 50 }, () => new TimeLimit(60_000, controller.signal));
    const sleeps = Array.from({ length: 50 }, () => sleep(60_000, controller.signal));
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
    limits[0]?.close();
    const reason = new Error("enough");
    controller.abort(reason);
    expect(limits.map(({ signal }) => signal.aborted)).toEqual([false, ...Array(49).fill(true)]);
    expect(limits[1]?.signal.reason).toBe(reason);
    for (const { status, ...rest } of await Promise.allSettled(sleeps)) {
      expect({ status, ...rest }).toEqual({ status: "rejected", reason });
    }
  });

  test("a limit and a sleep may be longer than a timer of Node", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const day = 86_400_000;
    const limit = new TimeLimit(60 * day);
    let slept = false;
    void sleep(60 * day).then(() => {
      slept = true;
    });
    await vi.advanceTimersByTimeAsync(20 * day);
    expect([limit.expired, slept]).toEqual([false, false]);
    await vi.advanceTimersByTimeAsync(39 * day);
    expect([limit.expired, slept]).toEqual([false, true]);
    await vi.advanceTimersByTimeAsync(day);
    expect(limit.expired).toBe(true);
  });

  test("a limit says whether the time ran out or the parent was aborted", async () => {
    const limit = new TimeLimit(10);
    await new Promise((resolve) => limit.signal.addEventListener("abort", resolve));
    expect(limit.expired).toBe(true);
    const aborted = new TimeLimit(10_000, AbortSignal.abort());
    expect([aborted.signal.aborted, aborted.expired]).toEqual([true, false]);
  });
});
