import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { StreamTicker } from "../../../src/doors/http/stream-ticker.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const counted = () => ({
  ticks: 0,
  tick() {
    this.ticks += 1;
  },
});
const sum = (streams: readonly { readonly ticks: number }[]) =>
  streams.reduce((all, { ticks }) => all + ticks, 0);

test("each of many streams is looked at within about a second, and only a part of them at a time", () => {
  const ticker = new StreamTicker();
  const streams = Array.from({ length: 1_000 }, counted);
  for (const stream of streams) ticker.add(stream);
  let most = 0;
  const start = Date.now();
  for (let before = 0; Date.now() - start < 1_000; before = sum(streams)) {
    vi.advanceTimersToNextTimer();
    most = Math.max(most, sum(streams) - before);
  }
  expect(streams.every(({ ticks }) => ticks === 1)).toBe(true);
  expect(most).toBe(50);
  for (const stream of streams) ticker.delete(stream);
  expect(vi.getTimerCount()).toBe(0);
});

test("a few streams are looked at once a second, too, and a process that stalls catches up", () => {
  const ticker = new StreamTicker();
  const streams = Array.from({ length: 3 }, counted);
  for (const stream of streams) ticker.add(stream);
  vi.advanceTimersByTime(10_000);
  expect(sum(streams)).toBe(30);
  vi.setSystemTime(Date.now() + 700);
  vi.advanceTimersByTime(300);
  expect(sum(streams)).toBe(33);
  // However long it stalled, none is looked at twice.
  vi.setSystemTime(Date.now() + 10_000);
  vi.advanceTimersByTime(50);
  expect(streams.map(({ ticks }) => ticks)).toEqual([12, 12, 12]);
  for (const stream of streams) ticker.delete(stream);
});

test("streams that come and go during a round do not keep the others waiting", () => {
  const ticker = new StreamTicker();
  const [staying, leaving] = [Array.from({ length: 30 }, counted), Array.from({ length: 30 }, counted)];
  for (const stream of [...leaving, ...staying]) ticker.add(stream);
  vi.advanceTimersByTime(300);
  for (const stream of leaving) ticker.delete(stream);
  const ended = sum(leaving);
  const late = counted();
  ticker.add(late);
  vi.advanceTimersByTime(1_500);
  expect(staying.every(({ ticks }) => ticks > 0)).toBe(true);
  expect(late.ticks).toBeGreaterThan(0);
  expect(sum(leaving)).toBe(ended);
});
