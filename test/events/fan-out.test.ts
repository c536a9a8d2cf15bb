import { expect, test } from "vitest";
import { FanOut } from "../../src/events/fan-out.ts";

/** Turns that the test runs. */
function turns() {
  const next: (() => void)[] = [];
  return { later: (turn: () => void) => void next.push(turn), run: () => next.shift()?.(), next };
}

function readers(count: number) {
  const woken: number[] = [];
  return { woken, all: Array.from({ length: count }, (_, at) => ({ wake: () => void woken.push(at) })) };
}

test("an event for 1000 readers takes turns of 64, in order, and misses none", () => {
  const { later, run, next } = turns();
  const fanOut = new FanOut(later);
  const { woken, all } = readers(1000);
  for (const reader of all) fanOut.wake(reader, 100);
  expect(woken).toHaveLength(64);
  const sizes: number[] = [];
  while (next.length > 0) {
    const before = woken.length;
    run();
    sizes.push(woken.length - before);
  }
  expect(Math.max(...sizes)).toBe(64);
  expect(woken).toEqual(all.map((_, at) => at));
});

test("large events take turns of about 256 Ki characters", () => {
  const { later, run } = turns();
  const fanOut = new FanOut(later);
  const { woken, all } = readers(40);
  for (const reader of all) fanOut.wake(reader, 64 * 1024);
  expect(woken).toHaveLength(4);
  run();
  expect(woken).toHaveLength(8);
});

test("a reader that waits is woken once, for all that came meanwhile; a single reader never waits", () => {
  const { later, run, next } = turns();
  const fanOut = new FanOut(later);
  const { woken, all } = readers(65);
  for (const reader of all) fanOut.wake(reader, 1);
  const last = all.at(-1);
  if (last) fanOut.wake(last, 1);
  run();
  expect(woken.filter((at) => at === 64)).toHaveLength(1);
  while (next.length > 0) run();
  if (last) fanOut.wake(last, 1);
  expect(woken.at(-1)).toBe(64);
});
