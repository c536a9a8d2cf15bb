/** What the crowd of a benchmark reads and counts. */
import { expect, test } from "vitest";
import { busiestSecond } from "../../bench/busiest-second.ts";

test("the busiest second of two processes is one second, not the sum of the busiest of each", () => {
  const early = [0, 10, 20, 5_000];
  const late = [5_100, 5_200, 5_300, 5_400, 9_000];
  expect([early, late].map(busiestSecond)).toEqual([3, 4]);
  expect(busiestSecond([...late, ...early])).toBe(5);
  expect(busiestSecond([])).toBe(0);
});
