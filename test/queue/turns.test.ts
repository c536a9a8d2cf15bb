/** The turns that delegators take in an agent's queue, in BullMQ's own order. */
import fc from "fast-check";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { discardTicketScript, TICKET_LUA } from "../../src/queue/ticket-script.ts";
import { Script } from "../../src/redis/script.ts";
import { bullmq, database, QUEUE, RECORD_LUA } from "../support/ticket-queue.ts";

const TURNS = "{errand:0}:turns:scout";
const AGENT = "{errand:0}:agent:scout";
const START = 1_800_000_000_000;

const script = (body: string) => new Script(`#!lua\n${TICKET_LUA}\n${RECORD_LUA}\n${body}`);
/** ARGV: delegator, priority, 1 for returned work, delay, time, the number of its first ticket and of its last. */
const addScript = script(`
local delegator, priority, returned, delay, at, from, till = unpack(ARGV)
for n = from, till do
  local id = 'dlg_0_' .. delegator:sub(8) .. n
  set_record(KEYS[1], id, delegator)
  ticket_add(KEYS[1], id, 1, tonumber(priority), returned == '1', tonumber(delay), tonumber(at), delegator)
end`);
const takeScript = script(`
local taken = {}
for i = 1, tonumber(ARGV[2]) do
  taken[i] = ticket_take(KEYS[1], tonumber(ARGV[1]))
  if not taken[i] then break end
end
return taken`);

/** ARGV: delegation, its new priority, its delegator. */
const raiseScript = script("ticket_raise(KEYS[1], ARGV[1], 1, tonumber(ARGV[2]), false, ARGV[3])");

interface Work {
  readonly priority?: number;
  readonly returned?: boolean;
  readonly delay?: number;
  readonly from?: number;
  readonly count?: number;
}

/** Delegators are `caller:` and a letter; the delegations of `a` are `a1`, `a2`, … */
async function setup() {
  const redis = await database();
  const add = (who: string, { priority = 5, returned = false, delay = 0, from = 1, count = 1 }: Work = {}) =>
    addScript.run(
      redis,
      [QUEUE],
      [`caller:${who}`, priority, returned ? 1 : 0, delay, START, from, from + count - 1],
    );
  const take = async (count = 100, later = 0): Promise<string[]> => {
    const taken = await takeScript.run(redis, [QUEUE], [START + later, count]);
    return Array.isArray(taken) ? taken.map((id) => String(id).slice("dlg_0_".length)) : [];
  };
  return { redis, add, take };
}

const weigh = (redis: Redis, weights: Record<string, number>) =>
  redis.hset(
    AGENT,
    Object.fromEntries(Object.entries(weights).map(([who, n]) => [`weight:caller:${who}`, n])),
  );

test("5 000 tasks of one delegator delay another's first by at most one new task", async () => {
  const { add, take } = await setup();
  await add("a", { count: 5_000 });
  expect(await take(1)).toEqual(["a1"]);
  await add("b", { count: 2 });
  expect(await take(5)).toEqual(["a2", "b1", "a3", "b2", "a4"]);
  // Later, with the turns of the first delegator far ahead.
  await take(1_000);
  await add("c");
  const next = await take(2);
  expect(next).toContain("c1");
});

test("delegators at the same turn are first in, first out; so is each one's own work", async () => {
  const { add, take } = await setup();
  for (const who of ["d", "b", "c", "a"]) await add(who, { count: 2 });
  expect(await take()).toEqual(["d1", "b1", "c1", "a1", "d2", "b2", "c2", "a2"]);
});

test("nobody saves turns, and a delegator whose work was taken waits for the others' turns", async () => {
  const { add, take } = await setup();
  await add("a", { count: 4 });
  await add("b", { count: 4 });
  await take(4);
  await add("b", { from: 5, count: 2 });
  await add("c", { count: 4 });
  const next = await take();
  expect(next.slice(0, 3).sort()).toEqual(["a3", "b3", "c1"]);
  expect(next.slice(3, 6).sort()).toEqual(["a4", "b4", "c2"]);
  expect(next.slice(6).sort()).toEqual(["b5", "b6", "c3", "c4"]);
});

test("weights of 3 and 1 give turns of 3 and 1", async () => {
  const { redis, add, take } = await setup();
  await weigh(redis, { a: 3 });
  await add("b", { count: 400 });
  await add("a", { count: 400 });
  const taken = await take(400);
  const ofA = taken.filter((id) => id.startsWith("a")).length;
  expect(Math.abs(ofA - 300)).toBeLessThanOrEqual(1);
  // In every stretch, too.
  for (let at = 0; at < 400; at += 40) {
    const some = taken.slice(at, at + 40).filter((id) => id.startsWith("a")).length;
    expect(Math.abs(some - 30)).toBeLessThanOrEqual(1);
  }
});

test("a delegator whose waiting work was removed takes the turn after what it has left", async () => {
  const { redis, add, take } = await setup();
  const discard = async (who: string, from: number, till: number) => {
    for (let n = from; n <= till; n += 1)
      expect(await discardTicketScript.run(redis, [QUEUE], [`dlg_0_${who}${n}`, 1])).toBe(1);
  };
  await add("a", { count: 60 });
  await add("b", { count: 6 });
  await discard("a", 3, 60);
  await add("a", { from: 61 });
  expect((await take(6)).sort()).toEqual(["a1", "a2", "a61", "b1", "b2", "b3"]);
  await add("a", { from: 70, count: 60 });
  await discard("a", 70, 129);
  // Nothing of it is left, so it begins with the others.
  await add("a", { from: 200, count: 2 });
  expect((await take(2)).sort()).toEqual(["a200", "b4"]);
  await discard("a", 201, 201);
  expect(await discardTicketScript.run(redis, [QUEUE], ["dlg_0_a201", 1])).toBe(0);
  expect(await take()).toEqual(["b5", "b6"]);
});

test("work that waits first in the queue counts as what its delegator has left", async () => {
  const { redis, add, take } = await setup();
  await add("a", { count: 2 });
  expect(await discardTicketScript.run(redis, [QUEUE], ["dlg_0_a1", 1])).toBe(1);
  await add("a", { from: 3 });
  await add("b");
  expect(await take()).toEqual(["a2", "b1", "a3"]);
});

test("a delegator that removes its work gets no earlier turn than without that work", async () => {
  const { redis, add, take } = await setup();
  for (const who of ["a", "b", "c", "d", "e"]) await add(who, { count: who === "b" ? 1 : 20 });
  const taken: string[] = [];
  // Whenever its work is taken, it adds some, removes it, and adds some again.
  for (let n = 2; taken.length < 40; n += 2) {
    do taken.push(...(await take(1)));
    while (taken.length < 40 && !taken.at(-1)?.startsWith("b"));
    await add("b", { from: n });
    expect(await discardTicketScript.run(redis, [QUEUE], [`dlg_0_b${n}`, 1])).toBe(1);
    await add("b", { from: n + 1 });
  }
  expect(taken.filter((id) => id.startsWith("b")).length).toBeLessThanOrEqual(9);
});

test("work that moves to a higher priority leaves no turns behind", async () => {
  const { redis, add, take } = await setup();
  await add("a", { count: 50 });
  await add("b", { count: 5 });
  for (let n = 2; n <= 50; n += 1) await raiseScript.run(redis, [QUEUE], [`dlg_0_a${n}`, 6, "caller:a"]);
  await take(49);
  await add("a", { from: 51 });
  expect((await take(4)).sort()).toEqual(["a1", "a51", "b1", "b2"]);
});

test("returned work comes before new work of its priority, first in, first out, and takes no turns", async () => {
  const { add, take } = await setup();
  await add("a", { count: 3 });
  await add("b", { returned: true, count: 2 });
  await add("a", { returned: true, from: 4 });
  await add("b", { from: 3 });
  await add("c", { priority: 6, count: 1 });
  expect(await take()).toEqual(["c1", "b1", "b2", "a4", "a1", "b3", "a2", "a3"]);
});

test("BullMQ's own tools see the order in which tickets are taken", async () => {
  const { redis, add, take } = await setup();
  const { queue } = await bullmq(redis);
  for (const [who, count] of [
    ["a", 40],
    ["b", 20],
    ["c", 5],
  ] as const)
    await add(who, { count });
  await add("b", { priority: 7, from: 21, count: 3 });
  await add("c", { returned: true, from: 6, count: 3 });
  const seen = (await queue.getPrioritized()).map(({ id = "" }) => id.slice("dlg_0_".length, -".1".length));
  expect(await take()).toEqual(seen);
});

test("delayed work takes its turn when it is ready", async () => {
  const { add, take } = await setup();
  await add("a", { delay: 1_000, count: 50 });
  await add("b", { delay: 2_000 });
  await add("c", { count: 3 });
  expect(await take(2)).toEqual(["c1", "c2"]);
  // None of the fifty comes before the one that waits, and the fifty hold up nobody.
  expect(await take(4, 2_000)).toEqual(["c3", "a1", "b1", "a2"]);
});

test("tickets of a broker without turns run first, in their own order; none is lost", async () => {
  const { redis, add, take } = await setup();
  const { queue } = await bullmq(redis);
  await add("a", { priority: 9 });
  const old = async (id: string, priority: number, delay = 0) => {
    await redis.hset(`{errand:0}:d:dlg_0_${id}`, "state", "submitted");
    await queue.add("ticket", {}, { jobId: `dlg_0_${id}.1`, priority, delay });
  };
  await old("old1", 10);
  await old("old2", 10);
  await old("old3", 2);
  await old("late", 10, 1);
  expect(await take(100, 3_600_000_000)).toEqual(["old3", "old1", "old2", "late", "a1"]);
});

test("a ticket that BullMQ moves or puts back is at the beginning of its band, and none is lost", async () => {
  const { redis, add, take } = await setup();
  const { queue, backend } = await bullmq(redis);
  await add("a", { count: 3 });
  await add("b", { delay: 1_000 });
  await redis.zadd(`${QUEUE}:delayed`, "XX", 1, "dlg_0_b1.1");
  expect((await backend.moveToActive("token"))?.[1]).toBe("dlg_0_b1.1");
  expect((await backend.moveToActive("token"))?.[1]).toBe("dlg_0_a1.1");
  await backend.moveJobFromActiveToWait("dlg_0_a1.1", "0");
  await backend.moveJobFromActiveToWait("dlg_0_b1.1", "0");
  expect(await take(100)).toEqual(["a1", "b1", "a2", "a3"]);
  expect(await queue.getJobCounts()).toMatchObject({ prioritized: 0, delayed: 0, active: 0 });
});

test("turns are kept only while tickets wait, and of at most 10 000 delegators", async () => {
  const { redis, add, take } = await setup();
  await add("a");
  expect(await redis.exists(TURNS)).toBe(0);
  await add("b");
  expect(await redis.zrange(TURNS, "0", "-1")).toEqual(["10", "10 caller:b", "10 caller:a"].sort());
  await take();
  expect(await redis.exists(TURNS)).toBe(0);

  await add("a", { count: 2 });
  await redis.zadd(
    TURNS,
    ...Array.from({ length: 10_000 }, (_, n) => [`${2 ** 52 + n}`, `10 caller:x${n}`]).flat(),
  );
  await add("b", { count: 2 });
  expect(await redis.zscore(TURNS, "10 caller:b")).toBeNull();
  expect(await redis.zcard(TURNS)).toBeLessThanOrEqual(10_002);
  expect((await take()).sort()).toEqual(["a1", "a2", "b1", "b2"]);
});

test("what is left of a delegator's turns is dropped when the band begins again", async () => {
  const { redis, add, take } = await setup();
  await add("a", { count: 100 });
  await take(100);
  // Another band is in use, so the turns are kept.
  await add("c", { priority: 1, count: 2 });
  await add("b");
  await add("a", { from: 101, count: 2 });
  await add("b", { from: 2 });
  expect(await take(4)).toEqual(["b1", "a101", "b2", "a102"]);
  expect(await redis.zcount(TURNS, "-inf", "+inf")).toBeGreaterThan(0);
});

/** Adds and takes in any order, by four delegators with weights. */
const steps = fc.array(
  fc.oneof(
    {
      weight: 2,
      arbitrary: fc.record({
        who: fc.constantFrom("a", "b", "c", "d"),
        count: fc.integer({ min: 1, max: 6 }),
      }),
    },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 8 }) },
  ),
  { minLength: 5, maxLength: 60 },
);
const WEIGHTS: Record<string, number> = { a: 1, b: 1, c: 3, d: 10 };

test("while two delegators wait, neither gets more than about a turn more than the other, and each keeps its order", async () => {
  const { redis, add, take } = await setup();
  const walks = fc.asyncProperty(steps, async (walk) => {
    await redis.flushdb();
    await weigh(redis, WEIGHTS);
    const made: Record<string, number> = {};
    const waiting: Record<string, number> = {};
    /** For each pair, what both got since both wait. */
    let shares = new Map<string, number>();
    const taken: string[] = [];
    for (const one of walk) {
      if (typeof one !== "number") {
        const { who, count } = one;
        await add(who, { from: (made[who] ?? 0) + 1, count });
        made[who] = (made[who] ?? 0) + count;
        waiting[who] = (waiting[who] ?? 0) + count;
        continue;
      }
      for (const id of await take(one)) {
        taken.push(id);
        const who = id[0] ?? "";
        const others = Object.keys(WEIGHTS).filter((other) => other !== who);
        const next = new Map<string, number>();
        for (const other of others) {
          if (!waiting[other]) continue;
          const pair = [who, other].sort().join();
          const got = (shares.get(pair) ?? 0) + (who < other ? 1 : -1) / (WEIGHTS[who] ?? 1);
          expect(Math.abs(got), pair).toBeLessThanOrEqual(
            1.05 * (1 / (WEIGHTS[who] ?? 1) + 1 / (WEIGHTS[other] ?? 1)),
          );
          next.set(pair, got);
        }
        for (const [pair, got] of shares) if (!pair.includes(who)) next.set(pair, got);
        waiting[who] = (waiting[who] ?? 1) - 1;
        if (waiting[who] === 0)
          for (const pair of [...next.keys()]) if (pair.includes(who)) next.delete(pair);
        shares = next;
      }
    }
    for (const who of Object.keys(WEIGHTS)) {
      const own = taken.filter((id) => id.startsWith(who)).map((id) => Number(id.slice(1)));
      expect(own).toEqual([...own].sort((x, y) => x - y));
    }
  });
  await fc.assert(walks, { numRuns: 40 });
});
