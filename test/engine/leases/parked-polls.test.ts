/** Polls that park until work arrives: wakes, fetches and drains, with the tickets in a real Redis. */
import { Redis } from "ioredis";
import { pino } from "pino";
import { expect, inject, onTestFinished, test } from "vitest";
import type { Fetched } from "../../../src/engine/leases/parked-poll.ts";
import { ParkedPolls } from "../../../src/engine/leases/parked-polls.ts";
import { type TicketData, Tickets } from "../../../src/queue/tickets.ts";
import { Shards } from "../../../src/redis/shards.ts";
import { freshDb } from "../../support/broker.ts";
import { allowStalls } from "../../support/stalls.ts";
import { takeAndDie } from "../../support/stock-queue.ts";
import { takeTicket } from "../../support/ticket-queue.ts";
import { until } from "../../support/until.ts";

async function setup(
  hooks: { beforePop?: () => Promise<void>; afterPop?: (pop: Fetched<TicketData>) => Promise<void> } = {},
) {
  const db = await freshDb();
  const redis = new Redis(inject("redisSocket"), { db });
  onTestFinished(() => redis.disconnect());
  const tickets = new Tickets(redis, new Shards(1), pino({ level: "silent" }));
  let pops = 0;
  const errors: unknown[] = [];
  const fetch = async () => {
    pops += 1;
    await hooks.beforePop?.();
    const pop = await takeTicket(redis);
    await hooks.afterPop?.(pop);
    return pop;
  };
  const polls = new ParkedPolls({ onError: (error) => errors.push(error) });
  const park = (signal = new AbortController().signal, wait_ms?: number) =>
    polls.park("scout", { signal, fetch, ...(wait_ms !== undefined && { wait_ms }) });
  const add = async (n: number, delay_ms = 0) => {
    await tickets.add(
      "scout",
      { delegation_id: "dlg_0_a", ticket: n },
      { priority: 5, returned: false, delay_ms },
    );
    polls.wake("scout");
  };
  return { db, redis, tickets, polls, park, add, errors, pops: () => pops };
}

test("a parked poll is woken by new work", async () => {
  const { park, add } = await setup();
  const parked = park();
  await add(1);
  expect(await parked).toMatchObject({ ticket: 1 });
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
    const { park, add } = await setup({
      async afterPop() {
        if (!first) return;
        first = false;
        inFlight();
        await held;
      },
    });
    const parked = park();
    // The queue was empty; the answer is in flight when the ticket and its wake come.
    await fetched;
    await add(1);
    goOn();
    expect(await parked).toMatchObject({ ticket: 1 });
  }
});

test("a poll that leaves during its fetch gets the ticket that the fetch took", async () => {
  let goOn = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  let popping = false;
  const { park, add } = await setup({
    async afterPop(pop) {
      if (pop.found === null || popping) return;
      popping = true;
      await held;
    },
  });
  const leaver = new AbortController();
  const left = park(leaver.signal);
  await add(1);
  await until(() => popping);
  leaver.abort();
  goOn();
  expect(await left).toMatchObject({ ticket: 1 });
});

test("a delayed ticket wakes a parked poll when it falls due", async () => {
  const withStalls = allowStalls();
  const { park, add, pops } = await setup();
  const parked = park();
  const addedAt = Date.now();
  await add(1, 300);
  expect(await parked).toMatchObject({ ticket: 1 });
  const late = Date.now() - addedAt - 300;
  expect(late).toBeGreaterThanOrEqual(0);
  expect(late).toBeLessThan(withStalls(250));
  expect(pops()).toBeLessThan(6);
});

test("many polls and many tickets: each ticket is taken once, and every poll gets its turn", async () => {
  const { polls, park, add } = await setup();
  const parked = Array.from({ length: 100 }, () => park());
  await Promise.all(Array.from({ length: 100 }, (_, n) => add(n + 1)));
  const got = await Promise.all(parked);
  expect(got.map((popped) => popped?.ticket).sort((a = 0, b = 0) => a - b)).toEqual(
    Array.from({ length: 100 }, (_, n) => n + 1),
  );
  expect(polls.count("scout")).toBe(0);
});

test("an aborted poll leaves no data", async () => {
  const { polls, park } = await setup();
  const leaver = new AbortController();
  const parked = park(leaver.signal);
  leaver.abort();
  expect(await parked).toBeNull();
  await until(() => [...polls.agents()].length === 0);
});

test("higher priority first; within one, returned work before new work, then first in, first out", async () => {
  const { tickets, redis } = await setup();
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
  for (let pop = await takeTicket(redis); pop.found; pop = await takeTicket(redis))
    got.push(pop.found.ticket);
  expect(got).toEqual([3, 4, 6, 1, 2, 5]);
});

test("a ticket that is taken leaves nothing in Redis but the queue's own keys", async () => {
  const { tickets, redis } = await setup();
  await tickets.add(
    "scout",
    { delegation_id: "dlg_0_a", ticket: 1 },
    { priority: 5, returned: false, delay_ms: 0 },
  );
  expect((await takeTicket(redis)).found).toMatchObject({ ticket: 1 });
  expect((await redis.keys("*")).filter((key) => key.includes("dlg_"))).toEqual([]);
  expect(await redis.llen("{errand:0}:q:scout:active")).toBe(0);
  expect(await tickets.find("scout", { delegation_id: "dlg_0_a", ticket: 1 })).toBe("missing");
});

test("a ticket that a Worker popped and never finished is found and removed", async () => {
  const { tickets, db } = await setup();
  const data = { delegation_id: "dlg_0_a", ticket: 1 };
  await tickets.add("scout", data, { priority: 5, returned: false, delay_ms: 0 });
  expect(await tickets.find("scout", data)).toBe("queued");
  expect(await takeAndDie(db, "scout")).toBe("dlg_0_a.1");
  expect(await tickets.find("scout", data)).toBe("popped");
  await tickets.discard("scout", data);
  expect(await tickets.find("scout", data)).toBe("missing");
  await tickets.discard("scout", data);
});

test("a delayed ticket is distinguished from one that can be popped", async () => {
  const { tickets } = await setup();
  const data = { delegation_id: "dlg_0_a", ticket: 1 };
  await tickets.add("scout", data, { priority: 5, returned: false, delay_ms: 60_000 });
  expect(await tickets.find("scout", data)).toBe("delayed");
  await tickets.discard("scout", data);
  expect(await tickets.find("scout", data)).toBe("missing");
});

test("a poll whose time is up ends, and leaves no data", async () => {
  const { polls, park } = await setup();
  expect(await park(new AbortController().signal, 20)).toBeNull();
  // A fetch that is in flight when the time is up ends after the answer.
  await until(() => [...polls.agents()].length === 0);
});

test("if the last fetch found nothing, the next poll parks without a fetch, until a wake", async () => {
  const { park, add, pops, polls } = await setup();
  const first = park();
  await until(() => pops() === 1 && polls.count("scout") === 1);
  const second = park();
  const third = park();
  expect(polls.count("scout")).toBe(3);
  await add(1);
  await add(2);
  await add(3);
  const got = await Promise.all([first, second, third]);
  expect(got.map((popped) => popped?.ticket).sort()).toEqual([1, 2, 3]);
  // One fetch that found nothing, three that found something, and those of the drain.
  expect(pops()).toBeLessThan(8);
});

test("a fetch that began before a drain does not end the drain", async () => {
  const polls = new ParkedPolls({ onError: () => {} });
  const { signal } = new AbortController();
  const answers: ((fetched: Fetched<number>) => void)[] = [];
  const fetch = () => new Promise<Fetched<number>>((resolve) => answers.push(resolve));
  const got: (number | null)[] = [];
  for (let n = 0; n < 3; n += 1) void polls.park("scout", { signal, fetch }).then((found) => got.push(found));
  for (let n = 0; n < 2; n += 1) answers.shift()?.({ found: null });
  await until(() => answers.length === 1);
  // The third is still fetching from an empty queue when one wake comes for three tickets.
  polls.wake("scout");
  answers.shift()?.({ found: null });
  for (let n = 1; n <= 3; n += 1) {
    await until(() => answers.length > 0, { what: `fetch ${n}` });
    answers.shift()?.({ found: n });
  }
  await until(() => got.length === 3);
  expect(got.sort()).toEqual([1, 2, 3]);
});

test("a new poll leads to a fetch after one that found the agent blocked: the queue is not known to be empty", async () => {
  const polls = new ParkedPolls({ onError: () => {} });
  const { signal } = new AbortController();
  const next: Fetched<string>[] = [{ found: null }, { found: null, blocked: true }, { found: "work" }];
  const fetch = async (): Promise<Fetched<string>> => next.shift() ?? { found: null };
  const first = polls.park("scout", { signal, fetch });
  await until(() => next.length === 2);
  polls.wake("scout", false);
  await until(() => next.length === 1);
  const leaving = new AbortController();
  const second = polls.park("scout", { signal: leaving.signal, fetch });
  expect(await first).toBe("work");
  leaving.abort();
  expect(await second).toBeNull();
});

test("a block that ends while the answer that tells of it is on its way leads to another fetch", async () => {
  const polls = new ParkedPolls({ onError: () => {}, recheckMs: 1e9 });
  const { signal } = new AbortController();
  const answers: ((answer: Fetched<string>) => void)[] = [];
  const fetch = () => new Promise<Fetched<string>>((resolve) => answers.push(resolve));
  const poll = polls.park("scout", { signal, fetch });
  await until(() => answers.length === 1);
  polls.wakeBlocked("scout");
  answers[0]?.({ found: null, blocked: true });
  await until(() => answers.length === 2);
  answers[1]?.({ found: null, blocked: true });
  await new Promise((resolve) => setImmediate(resolve));
  expect(answers).toHaveLength(2);
  polls.wakeBlocked("scout");
  await until(() => answers.length === 3);
  answers[2]?.({ found: "work" });
  expect(await poll).toBe("work");
});

test("a drain fetches once from the queue of a blocked agent, whatever the number of polls", async () => {
  const polls = new ParkedPolls({ onError: () => {} });
  const leaving = new AbortController();
  const { signal } = leaving;
  let fetches = 0;
  const fetch = async (): Promise<Fetched<string>> => {
    fetches += 1;
    await new Promise((resolve) => setImmediate(resolve));
    return { found: null, blocked: true };
  };
  const waiting = [1, 2, 3].map(() => polls.park("scout", { signal, fetch }));
  const turns = async (count: number) => {
    for (let n = 0; n < count; n += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  await turns(20);
  expect(fetches).toBe(3);
  polls.wake("scout");
  await turns(50);
  expect(fetches).toBe(4);
  expect(polls.count("scout")).toBe(3);
  leaving.abort();
  expect(await Promise.all(waiting)).toEqual([null, null, null]);
});
