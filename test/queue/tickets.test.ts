/** Popping a ticket, delaying it again and taking it over follow Redis' clock, whatever the gateway's clock says. */
import { pino } from "pino";
import { afterEach, expect, test, vi } from "vitest";
import { Tickets } from "../../src/queue/tickets.ts";
import { Shards } from "../../src/redis/shards.ts";
import { database } from "../support/ticket-queue.ts";
import { until } from "../support/until.ts";

const HOUR_MS = 3_600_000;
/** Longer than a busy machine stops this process between two calls. */
const DELAY_MS = 1_500;
const NOW = { priority: 5, returned: false, delay_ms: 0 };

afterEach(() => void vi.useRealTimers());

function setClock(errorMs: number): void {
  vi.useRealTimers();
  if (errorMs !== 0) vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + errorMs });
}

async function setup() {
  const tickets = new Tickets(await database(), new Shards(1), pino({ level: "silent" }));
  const add = (ticket: number, push?: string) =>
    tickets.add("scout", { delegation_id: "dlg_0_a", ticket, push }, NOW);
  const pop = async () => {
    const { found } = await tickets.pop("scout");
    if (!found) throw new Error("nothing was popped");
    return found;
  };
  return { tickets, add, pop };
}

test.each([-HOUR_MS, 0, HOUR_MS])(
  "a ticket is delayed again for the requested time by a clock that is off by %d ms",
  async (errorMs) => {
    const { tickets, add, pop } = await setup();
    await add(1);
    setClock(errorMs);
    await tickets.putBack(await pop(), DELAY_MS);
    const look = await tickets.pop("scout");
    expect(look.found).toBeNull();
    const dueInMs = (look.next_due_at ?? Number.NaN) - Date.now();
    expect(dueInMs).toBeGreaterThan(0);
    expect(dueInMs).toBeLessThanOrEqual(DELAY_MS);
    setClock(0);
    expect((await until(() => tickets.pop("scout").then(({ found }) => found))).ticket).toBe(1);
  },
);

test.each([-HOUR_MS, HOUR_MS])(
  "a ticket in progress is taken over neither early nor late by a clock that is off by %d ms",
  async (errorMs) => {
    const { tickets, add, pop } = await setup();
    await add(1);
    setClock(errorMs);
    await pop();
    setClock(0);
    expect(await tickets.popped("scout", 60_000)).toEqual([]);
    expect(await tickets.popped("scout", -1)).toMatchObject([{ ticket: 1 }]);
    setClock(errorMs);
    expect(await tickets.popped("scout", 60_000)).toEqual([]);
    expect(await tickets.popped("scout", -1)).toMatchObject([{ ticket: 1 }]);
  },
);

test("a popped ticket is consumed once, and contains its delegation", async () => {
  const { tickets, add, pop } = await setup();
  await add(1, "p1");
  const popped = await pop();
  expect(popped).toMatchObject({ agent: "scout", delegation_id: "dlg_0_a", ticket: 1, push: "p1" });
  await tickets.consume(popped);
  expect(await tickets.find("scout", popped)).toBe("missing");
  await expect(tickets.putBack(popped, 100)).rejects.toThrow("was not put back");
  expect(await tickets.pop("scout")).toEqual({ found: null, next_due_at: null });
});

test("the agents whose queues are not empty are found in every shard, delayed tickets included", async () => {
  const shards = new Shards(2);
  const tickets = new Tickets(await database(), shards, pino({ level: "silent" }));
  const agents = Array.from({ length: 8 }, (_, n) => `agent-${n}`);
  const inShard = (shard: number) => agents.filter((agent) => shards.indexOfAgent(agent) === shard);
  const [ready = "", popped = ""] = inShard(0);
  const [delayed = ""] = inShard(1);
  expect(await tickets.findQueued(agents)).toEqual([]);
  const ticket = { delegation_id: "dlg_0_a", ticket: 1 };
  await tickets.add(ready, ticket, NOW);
  await tickets.add(delayed, ticket, { ...NOW, delay_ms: DELAY_MS });
  await tickets.add(popped, ticket, NOW);
  const { found } = await tickets.pop(popped);
  if (!found) throw new Error("nothing was popped");
  expect((await tickets.findQueued(agents)).sort()).toEqual([ready, delayed].sort());
  await tickets.putBack(found);
  expect((await tickets.findQueued(agents)).sort()).toEqual([ready, delayed, popped].sort());
});
