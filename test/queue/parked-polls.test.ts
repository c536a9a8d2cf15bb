import { Redis } from "ioredis";
import { pino } from "pino";
import { describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { type Look, ParkedPolls } from "../../src/queue/parked-polls.ts";
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
  const claimers = new ParkedPolls({ onError: (error) => errors.push(error) });
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
  const claimers = new ParkedPolls({ onError: () => {} });
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
  const claimers = new ParkedPolls({ onError: () => {} });
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

const nothing = Promise.resolve(null);

/** Parked polls, each having found nothing, that say (or not) on what terms a ticket is taken for them. */
async function lenders(names: readonly (string | undefined)[]) {
  const claimers = new ParkedPolls<string, Look<number>>({ onError: () => {} });
  /** What a look of their own finds; each waits for one. */
  const answers: ((look: Look<number>) => void)[] = [];
  const own = () => new Promise<Look<number>>((resolve) => answers.push(resolve));
  const leavers = new Map<string | undefined, AbortController>();
  const got = new Map<string | undefined, Promise<number | null>>();
  const park = (terms: string | undefined) => {
    const leaver = new AbortController();
    leavers.set(terms, leaver);
    const look = async (brought?: Look<number>) => brought ?? own();
    const asked = { signal: leaver.signal, look, ...(terms !== undefined && { terms }) };
    got.set(terms, claimers.claim("scout", asked));
  };
  for (const name of names) park(name);
  for (const _ of names) {
    await until(() => answers.length > 0);
    answers.shift()?.({ found: null });
  }
  await turns();
  expect(answers).toEqual([]);
  onTestFinished(async () => {
    for (const leaver of leavers.values()) leaver.abort();
    for (const answer of answers) answer({ found: null });
    await turns();
    expect(claimers.parked()).toBe(0);
    expect([...claimers.agents()]).toEqual([]);
  });
  return { claimers, answers, park, got, leave: (name: string) => leavers.get(name)?.abort() };
}

/** All that only waits for promises is done. */
async function turns(): Promise<void> {
  for (let n = 0; n < 5; n += 1) await new Promise((resolve) => setImmediate(resolve));
}

test("the poll that waits longest is lent, and ends with what it is brought, without a look of its own", async () => {
  const { claimers, answers, got } = await lenders(["first", "second"]);
  const lent = claimers.lend("scout");
  expect(lent?.terms).toBe("first");
  expect(claimers.waiting("scout")).toBe(2);
  lent?.done(Promise.resolve({ found: 1 }));
  expect(await got.get("first")).toBe(1);
  await turns();
  expect(claimers.waiting("scout")).toBe(1);
  expect(answers).toEqual([]);
});

test("each poll is lent once at a time", async () => {
  const { claimers, got } = await lenders(["first", "second"]);
  const lent = [claimers.lend("scout"), claimers.lend("scout")];
  expect(lent.map((one) => one?.terms)).toEqual(["first", "second"]);
  expect(claimers.lend("scout")).toBeNull();
  for (const [n, one] of lent.entries()) one?.done(Promise.resolve({ found: n }));
  expect(await Promise.all(got.values())).toEqual([0, 1]);
});

test("none is lent where nobody waits, or where each looks for itself", async () => {
  const { claimers, answers, park } = await lenders([]);
  expect(claimers.lend("scout")).toBeNull();
  park("first");
  expect(claimers.lend("scout")).toBeNull();
  park("second");
  await until(() => answers.length === 2);
  answers.shift()?.({ found: null });
  await turns();
  // The other looks still; this one has seen that there is nothing.
  const lent = claimers.lend("scout");
  expect(lent?.terms).toBe("first");
  lent?.done(nothing);
});

test("one is lent while another drains the queue, and the drain goes on", async () => {
  const { claimers, answers, park, got } = await lenders(["first", "second"]);
  claimers.wake("scout");
  const lent = claimers.lend("scout");
  expect(lent?.terms).toBe("second");
  lent?.done(Promise.resolve({ found: 1 }));
  expect(await got.get("second")).toBe(1);
  await until(() => answers.length === 1);
  answers.shift()?.({ found: 2 });
  expect(await got.get("first")).toBe(2);
  // Whoever comes next looks, for there may be more.
  park("third");
  await until(() => answers.length === 1);
});

test("polls that do not say their terms are passed over", async () => {
  const { claimers, got } = await lenders([undefined, "second"]);
  const lent = claimers.lend("scout");
  expect(lent?.terms).toBe("second");
  expect(claimers.lend("scout")).toBeNull();
  lent?.done(Promise.resolve({ found: 1 }));
  expect(await got.get("second")).toBe(1);
});

test("a poll that was brought nothing waits on without a look, and a wake that came meanwhile is its own", async () => {
  const { claimers, answers, got } = await lenders(["first"]);
  claimers.lend("scout")?.done(nothing);
  await turns();
  expect([claimers.waiting("scout"), answers.length]).toEqual([1, 0]);
  const lent = claimers.lend("scout");
  claimers.wake("scout", false);
  await turns();
  expect(answers).toEqual([]);
  lent?.done(nothing);
  await until(() => answers.length === 1);
  answers.shift()?.({ found: 7 });
  expect(await got.get("first")).toBe(7);
});

test("a lent poll that leaves is ended by what it is brought: given it, or nothing", async () => {
  for (const brought of [{ found: 3 }, null]) {
    const { claimers, got, leave } = await lenders(["first"]);
    const lent = claimers.lend("scout");
    leave("first");
    expect(claimers.waiting("scout")).toBe(1);
    lent?.done(Promise.resolve(brought));
    expect(await got.get("first")).toBe(brought?.found ?? null);
    await turns();
    expect([...claimers.agents()]).toEqual([]);
  }
});

test("what a lent poll was brought before a drain does not end it", async () => {
  const { claimers, answers, got } = await lenders(["first", "second", "third"]);
  let bring = (_: Look<number>) => {};
  claimers.lend("scout")?.done(
    new Promise((resolve) => {
      bring = resolve;
    }),
  );
  // Three come that are told of as one, and behind the look.
  claimers.wake("scout");
  await until(() => answers.length === 1);
  bring({ found: null });
  await turns();
  for (let n = 1; n <= 3; n += 1) {
    await until(() => answers.length > 0, { what: `look ${n}` });
    answers.shift()?.({ found: n });
  }
  expect((await Promise.all(got.values())).sort()).toEqual([1, 2, 3]);
});

describe("of an agent whose polls have all left", () => {
  const gone = async () => {
    const desk = await lenders(["first"]);
    desk.leave("first");
    expect(await desk.got.get("first")).toBeNull();
    expect(desk.claimers.agents()).toEqual([]);
    return desk;
  };

  test("the next poll need not look while the queue is known to be empty, and can be lent", async () => {
    const { claimers, answers, park, got } = await gone();
    park("second");
    await turns();
    expect(answers).toEqual([]);
    const lent = claimers.lend("scout");
    lent?.done(Promise.resolve({ found: 1 }));
    expect(await got.get("second")).toBe(1);
    park("third");
    await turns();
    expect(answers).toEqual([]);
  });

  test.each([true, false])(
    "the next poll looks when something was told of meanwhile (drain: %s)",
    async (drain) => {
      const { claimers, answers, park } = await gone();
      claimers.wake("scout", drain);
      park("second");
      await until(() => answers.length === 1);
    },
  );

  test("the next poll looks after a gap in the wakes", async () => {
    const { claimers, answers, park } = await gone();
    claimers.wakeAll();
    park("second");
    await until(() => answers.length === 1);
  });
});

test("what is known of a queue without a poll is forgotten", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const { answers, leave, got, park } = await lenders(["first"]);
  leave("first");
  await got.get("first");
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(60_000);
  expect(vi.getTimerCount()).toBe(0);
  park("second");
  await turns();
  expect(answers.length).toBe(1);
});
