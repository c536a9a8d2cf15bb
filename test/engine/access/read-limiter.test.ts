import { expect, test } from "vitest";
import { ReadLimiter } from "../../../src/engine/access/read-limiter.ts";
import { LIMITS } from "../../../src/schema/limits.ts";

const OF_ONE = LIMITS.reads.value;

/** Reads of several principals, in the order in which they get their turns. */
function setup() {
  const turns = new ReadLimiter();
  const began: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (name: string, times = 1) => {
    for (let n = 0; n < times; n += 1) {
      void turns.acquire({ text: name }).then((end) => {
        began.push(name);
        ends.push(end);
      });
    }
  };
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
  return { turns, began, ends, ask, settled };
}

test("one principal's reads wait for each other, and another principal's do not wait for them", async () => {
  const { began, ends, ask, settled } = setup();
  ask("caller:alice", 50);
  ask("caller:bob");
  await settled();
  expect(began).toEqual([...Array.from({ length: OF_ONE }, () => "caller:alice"), "caller:bob"]);
  ends[0]?.();
  // Once or more often.
  ends[0]?.();
  await settled();
  expect(began).toHaveLength(OF_ONE + 2);
});

test("when all turns are taken, the next one goes to each principal in turn", async () => {
  const { began, ends, ask, settled } = setup();
  for (const name of ["a", "b", "c"]) ask(name, OF_ONE);
  ask("a", 3);
  ask("d", 2);
  ask("e", 1);
  await settled();
  expect(began).toHaveLength(3 * OF_ONE);
  for (let n = 0; n < 8; n += 1) {
    ends[n]?.();
    await settled();
  }
  expect(began.slice(3 * OF_ONE).sort()).toEqual(["a", "a", "a", "d", "d", "e"]);
  // Two reads of `a` may not go before the first of `e`.
  const order = began.slice(3 * OF_ONE);
  expect(order.indexOf("e")).toBeLessThan(order.lastIndexOf("a"));
});

test("reads beyond the number that may wait are refused, and a failed read gives its turn back", async () => {
  const { turns, ask, ends, settled } = setup();
  ask("caller:alice", OF_ONE + LIMITS.reads_waiting.value);
  await settled();
  await expect(turns.acquire({ text: "caller:alice" })).rejects.toMatchObject({ code: "quota_exceeded" });
  const failed = turns.run({ text: "caller:bob" }, async () => {
    throw new Error("no");
  });
  await expect(failed).rejects.toThrow("no");
  for (let n = 0; n < OF_ONE; n += 1) await turns.run({ text: "caller:bob" }, async () => {});
  expect(ends).toHaveLength(OF_ONE);
});

test("a stream waits for its turn without a limit, and leaves nothing behind when its reader leaves", async () => {
  const { turns, ends, ask, settled, began } = setup();
  ask("caller:alice", OF_ONE + LIMITS.reads_waiting.value);
  await settled();
  const gone = new AbortController();
  let left = 0;
  for (let n = 0; n < 3; n += 1) {
    void turns.acquireWhile({ text: "caller:alice" }, gone.signal).then((end) => {
      left += 1;
      end();
    });
  }
  const stays = turns.acquireWhile({ text: "caller:alice" }, new AbortController().signal);
  await settled();
  expect(left).toBe(0);
  gone.abort();
  await settled();
  expect(left).toBe(3);
  // The turns go to those that waited before, one at a time, and then to the stream that stays.
  for (let n = 0; n < OF_ONE + LIMITS.reads_waiting.value; n += 1) {
    ends[n]?.();
    await settled();
  }
  expect(began).toHaveLength(OF_ONE + LIMITS.reads_waiting.value);
  (await stays)();
  (await turns.acquireWhile({ text: "caller:alice" }, gone.signal))();
});
