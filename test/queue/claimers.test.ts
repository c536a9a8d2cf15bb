import { Redis } from "ioredis";
import { pino } from "pino";
import { expect, inject, onTestFinished, test } from "vitest";
import { Claimers, type Look } from "../../src/queue/claimers.ts";
import { type Popped, Tickets } from "../../src/queue/tickets.ts";
import { Shards } from "../../src/redis/shards.ts";
import { freshDb } from "../support/broker.ts";
import { until } from "../support/until.ts";

async function setup(
  hooks: { beforePop?: () => Promise<void>; afterPop?: (pop: Look<Popped>) => Promise<void> } = {},
) {
  const redis = new Redis(inject("redisSocket"), { db: await freshDb() });
  onTestFinished(() => redis.disconnect());
  const tickets = new Tickets(redis, new Shards(1), pino({ level: "silent" }));
  let pops = 0;
  const errors: unknown[] = [];
  const look = async () => {
    pops += 1;
    await hooks.beforePop?.();
    const pop = await tickets.pop("scout");
    await hooks.afterPop?.(pop);
    return pop;
  };
  const claimers = new Claimers({ onError: (error) => errors.push(error) });
  const claim = (signal = new AbortController().signal, wait_ms?: number) =>
    claimers.claim("scout", { signal, look, ...(wait_ms !== undefined && { wait_ms }) });
  const add = async (n: number, delay_ms = 0) => {
    await tickets.add(
      "scout",
      { delegation_id: "dlg_0_a", ticket: n },
      { priority: 5, returned: false, delay_ms },
    );
    claimers.wake("scout");
  };
  return { redis, tickets, claimers, claim, add, errors, pops: () => pops };
}

test("a parked poll is woken by new work", async () => {
  const { claim, add } = await setup();
  const claimed = claim();
  await add(1);
  expect(await claimed).toMatchObject({ ticket: 1, agent: "scout" });
});

test("a wake that arrives while an empty fetch is in flight is not lost", async () => {
  for (let round = 0; round < 50; round += 1) {
    let inFlight = () => {};
    const fetched = new Promise<void>((resolve) => {
      inFlight = resolve;
    });
    let goOn = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    let first = true;
    const { claim, add } = await setup({
      async afterPop() {
        if (!first) return;
        first = false;
        inFlight();
        await held;
      },
    });
    const claimed = claim();
    // The queue was seen empty; the answer is still on its way when the ticket and its wake come.
    await fetched;
    await add(1);
    goOn();
    expect(await claimed).toMatchObject({ ticket: 1 });
  }
});

test("what a look took is given to the poll that looked, although it has left meanwhile", async () => {
  let goOn = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  let popping = false;
  const { claim, add } = await setup({
    async afterPop(pop) {
      if (pop.found === null || popping) return;
      popping = true;
      await held;
    },
  });
  const leaver = new AbortController();
  const left = claim(leaver.signal);
  await add(1);
  await until(() => popping);
  leaver.abort();
  goOn();
  expect(await left).toMatchObject({ ticket: 1 });
});

test("a delayed ticket wakes a parked poll when it falls due", async () => {
  const { claim, add, pops } = await setup();
  const claimed = claim();
  const addedAt = Date.now();
  await add(1, 300);
  expect(await claimed).toMatchObject({ ticket: 1 });
  const late = Date.now() - addedAt - 300;
  expect(late).toBeGreaterThanOrEqual(0);
  expect(late).toBeLessThan(250);
  expect(pops()).toBeLessThan(6);
});

test("many polls and many tickets: each ticket once, nobody starves", async () => {
  const { claimers, claim, add } = await setup();
  const claims = Array.from({ length: 100 }, () => claim());
  await Promise.all(Array.from({ length: 100 }, (_, n) => add(n + 1)));
  const got = await Promise.all(claims);
  expect(got.map((popped) => popped?.ticket).sort((a = 0, b = 0) => a - b)).toEqual(
    Array.from({ length: 100 }, (_, n) => n + 1),
  );
  expect(claimers.waiting("scout")).toBe(0);
});

test("an aborted poll leaves nothing behind", async () => {
  const { claimers, claim } = await setup();
  const leaver = new AbortController();
  const claimed = claim(leaver.signal);
  leaver.abort();
  expect(await claimed).toBeNull();
  await until(() => [...claimers.agents()].length === 0);
});

test("higher priority first, returned before new within one, first in first out", async () => {
  const { tickets } = await setup();
  const order = [
    [1, 5, false],
    [2, 5, false],
    [3, 9, false],
    [4, 5, true],
    [5, 0, true],
    [6, 5, true],
  ] as const;
  for (const [ticket, priority, returned] of order) {
    await tickets.add("scout", { delegation_id: "dlg_0_a", ticket }, { priority, returned, delay_ms: 0 });
  }
  const got: number[] = [];
  for (let pop = await tickets.pop("scout"); pop.found; pop = await tickets.pop("scout")) {
    got.push(pop.found.ticket);
    await tickets.consume(pop.found);
  }
  expect(got).toEqual([3, 4, 6, 1, 2, 5]);
});

test("a consumed ticket leaves nothing in Redis but the queue's own keys", async () => {
  const { tickets, redis } = await setup();
  await tickets.add(
    "scout",
    { delegation_id: "dlg_0_a", ticket: 1 },
    { priority: 5, returned: false, delay_ms: 0 },
  );
  const { found } = await tickets.pop("scout");
  if (found) await tickets.consume(found);
  expect((await redis.keys("*")).filter((key) => key.includes("dlg_"))).toEqual([]);
  expect(await redis.llen("{errand:0}:q:scout:active")).toBe(0);
  expect(await tickets.find("scout", { delegation_id: "dlg_0_a", ticket: 1 })).toBe("missing");
});

test("a ticket that was popped and never consumed is found and taken out", async () => {
  const { tickets } = await setup();
  const data = { delegation_id: "dlg_0_a", ticket: 1 };
  await tickets.add("scout", data, { priority: 5, returned: false, delay_ms: 0 });
  expect(await tickets.find("scout", data)).toBe("queued");
  await tickets.pop("scout");
  expect(await tickets.find("scout", data)).toBe("popped");
  await tickets.discard("scout", data);
  expect(await tickets.find("scout", data)).toBe("missing");
  await tickets.discard("scout", data);
});

test("a delayed ticket is told from one that can be popped", async () => {
  const { tickets } = await setup();
  const data = { delegation_id: "dlg_0_a", ticket: 1 };
  await tickets.add("scout", data, { priority: 5, returned: false, delay_ms: 60_000 });
  expect(await tickets.find("scout", data)).toBe("delayed");
  await tickets.discard("scout", data);
  expect(await tickets.find("scout", data)).toBe("missing");
});

test("a poll whose time is up is answered, and leaves nothing behind", async () => {
  const { claimers, claim } = await setup();
  expect(await claim(new AbortController().signal, 20)).toBeNull();
  // Where the time was up during a look, the look is put away behind the answer.
  await until(() => [...claimers.agents()].length === 0);
});

test("where the last look found nothing, a further poll parks without looking; a wake ends that", async () => {
  const { claim, add, pops, claimers } = await setup();
  const first = claim();
  await until(() => pops() === 1 && claimers.waiting("scout") === 1);
  const second = claim();
  const third = claim();
  expect(claimers.waiting("scout")).toBe(3);
  await add(1);
  await add(2);
  await add(3);
  const got = await Promise.all([first, second, third]);
  expect(got.map((popped) => popped?.ticket).sort()).toEqual([1, 2, 3]);
  // One look that found nothing before, three that found something, and what the drain needs.
  expect(pops()).toBeLessThan(8);
});

test("a look that began before a drain does not end it", async () => {
  const claimers = new Claimers({ onError: () => {} });
  const { signal } = new AbortController();
  const answers: ((look: Look<number>) => void)[] = [];
  const look = () => new Promise<Look<number>>((resolve) => answers.push(resolve));
  const got: (number | null)[] = [];
  for (let n = 0; n < 3; n += 1)
    void claimers.claim("scout", { signal, look }).then((found) => got.push(found));
  for (let n = 0; n < 2; n += 1) answers.shift()?.({ found: null });
  await until(() => answers.length === 1);
  // The third is still looking, and saw an empty queue, when three come that are told of as one.
  claimers.wake("scout");
  answers.shift()?.({ found: null });
  for (let n = 1; n <= 3; n += 1) {
    await until(() => answers.length > 0, { what: `look ${n}` });
    answers.shift()?.({ found: n });
  }
  await until(() => got.length === 3);
  expect(got.sort()).toEqual([1, 2, 3]);
});

test("a held queue is looked at once for a drain, by whoever waits on as well", async () => {
  const claimers = new Claimers({ onError: () => {} });
  const leaving = new AbortController();
  const { signal } = leaving;
  let looks = 0;
  const look = async (): Promise<Look<string>> => {
    looks += 1;
    await new Promise((resolve) => setImmediate(resolve));
    return { found: "held", held: true };
  };
  const poll = async () => {
    let found: string | null = null;
    do found = await claimers.claim<string>("scout", { signal, look, park: found !== null });
    while (found !== null);
  };
  const polls = [poll(), poll(), poll()];
  const turns = async (count: number) => {
    for (let n = 0; n < count; n += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  await turns(20);
  expect(looks).toBe(3);
  claimers.wake("scout");
  await turns(50);
  expect(looks).toBe(4);
  leaving.abort();
  await Promise.all(polls);
});
