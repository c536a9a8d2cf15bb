import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LastMark, type Marked, MarkedCache } from "../../src/util/marked-cache.ts";

const SECOND = 1_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A store whose changes other gateways make, and a cache of it that counts its reads. */
function setup(maxBytes = 1_000) {
  const stored = new Map<string, string>();
  const reads: string[] = [];
  let mark: string | null = null;
  const readMark = vi.fn(async () => mark);
  const last = new LastMark(readMark);
  const cache = new MarkedCache<string>({ maxBytes, bytesOf: (value) => value.length });
  const load = (key: string) => async () => {
    reads.push(key);
    return { value: stored.get(key) ?? null, mark };
  };
  const change = (key: string, value: string) => {
    stored.set(key, value);
    mark = `${key} ${value}`;
  };
  const find = (key: string) => cache.find(key, last, load(key));
  const setMark = (to: string | null) => {
    mark = to;
  };
  return { stored, reads, readMark, last, cache, change, setMark, load, find };
}

test("one read of the mark serves all look-ups of a second", async () => {
  const { stored, reads, readMark, find } = setup();
  for (const key of ["a", "b", "c"]) stored.set(key, key);
  for (let round = 0; round < 3; round += 1) {
    expect(await Promise.all(["a", "b", "c"].map(find))).toEqual(["a", "b", "c"]);
    expect(readMark).toHaveBeenCalledTimes(round + 1);
    await find("a");
    vi.advanceTimersByTime(SECOND);
  }
  expect(reads).toEqual(["a", "b", "c"]);
  expect(readMark).toHaveBeenCalledTimes(3);
});

test("a change is seen after a second, or at once if the entry is dropped", async () => {
  const { change, find, cache } = setup();
  change("a", "one");
  expect(await find("a")).toBe("one");
  change("a", "two");
  vi.advanceTimersByTime(SECOND - 1);
  expect(await find("a")).toBe("one");
  vi.advanceTimersByTime(1);
  expect(await find("a")).toBe("two");
  change("a", "three");
  cache.delete("a");
  expect(await find("a")).toBe("three");
  change("a", "four");
  cache.clear();
  expect(await find("a")).toBe("four");
});

test("a look-up that started before a change is not cached", async () => {
  const { cache, last, change, find } = setup();
  const drops = [
    () => cache.delete("a"),
    () => cache.clear(),
    async () => {
      vi.advanceTimersByTime(SECOND);
      await find("other");
    },
  ];
  for (const [n, drop] of drops.entries()) {
    change("a", `old ${n}`);
    vi.advanceTimersByTime(SECOND);
    await find("other");
    let answer = (_: Marked<string>) => {};
    const slow = cache.find("a", last, () => new Promise((resolve) => (answer = resolve)));
    change("a", `new ${n}`);
    await drop();
    answer({ value: `old ${n}`, mark: `a old ${n}` });
    expect(await slow).toBe(`old ${n}`);
    expect(await find("a")).toBe(`new ${n}`);
  }
});

test("a missing value is not cached, and a deleted one leaves the cache", async () => {
  const { stored, reads, cache, change, find, load } = setup();
  expect([await find("a"), await find("a")]).toEqual([null, null]);
  expect(reads).toEqual(["a", "a"]);
  change("a", "one");
  expect(await find("a")).toBe("one");
  stored.delete("a");
  expect(await cache.reload("a", load("a"))).toBeNull();
  expect(cache.lastKnown("a")).toBeNull();
});

test("a change that a fail-over undoes leaves the cache", async () => {
  const { change, setMark, stored, find } = setup();
  change("a", "one");
  await find("a");
  change("a", "two");
  await find("other");
  setMark("a one");
  // Read with the new mark, before the new mark itself was looked at.
  vi.advanceTimersByTime(SECOND - 1);
  change("b", "lost");
  expect(await find("b")).toBe("lost");
  stored.set("b", "before");
  setMark("a one");
  vi.advanceTimersByTime(SECOND);
  expect(await find("b")).toBe("before");
  expect(await find("a")).toBe("one");
});

test("without a mark, a change is seen after two minutes", async () => {
  const { stored, find } = setup();
  stored.set("a", "one");
  await find("a");
  stored.set("a", "two");
  vi.advanceTimersByTime(119 * SECOND);
  expect(await find("a")).toBe("one");
  vi.advanceTimersByTime(SECOND);
  expect(await find("a")).toBe("two");
});

test("while the mark cannot be read, only the last known value is left", async () => {
  const { readMark, cache, stored, find } = setup();
  stored.set("a", "one");
  await find("a");
  readMark.mockRejectedValue(new Error("away"));
  vi.advanceTimersByTime(SECOND);
  await expect(find("a")).rejects.toThrow("away");
  expect([cache.lastKnown("a"), cache.lastKnown("b")]).toEqual(["one", null]);
});

test("the cache is bounded in bytes, and keeps the values used last", async () => {
  const { stored, reads, find } = setup(100);
  for (const key of ["a", "b", "c"]) stored.set(key, "x".repeat(40));
  for (const key of ["a", "b", "a", "c", "a"]) await find(key);
  expect(reads).toEqual(["a", "b", "c"]);
  await find("b");
  expect(reads).toEqual(["a", "b", "c", "b"]);
  stored.set("large", "x".repeat(200));
  await find("large");
  await find("large");
  expect(reads.slice(4)).toEqual(["large", "large"]);
});
