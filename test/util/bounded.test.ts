/** Bounded maps and sets keep the newest entries. */
import { expect, test } from "vitest";
import { BoundedMap, BoundedSet } from "../../src/util/bounded.ts";

test("a map drops the oldest entry, never all of them; setting one again makes it the newest", () => {
  const map = new BoundedMap<string, number>(2);
  map.set("a", 1).set("b", 2).set("a", 3).set("c", 4);
  expect([...map]).toEqual([
    ["a", 3],
    ["c", 4],
  ]);
  for (let n = 0; n < 1_000; n += 1) map.set(String(n), n);
  expect([...map.values()]).toEqual([998, 999]);
});

test("a set drops the oldest value; adding one again makes it the newest", () => {
  const set = new BoundedSet<number>(2);
  set.add(1).add(2).add(1).add(3);
  expect([...set]).toEqual([1, 3]);
});
