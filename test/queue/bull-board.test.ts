/** The queue of an agent as Bull Board shows and steers it: a stock dashboard, which knows nothing of delegations. */
import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { HonoAdapter } from "@bull-board/hono";
import { serveStatic } from "@hono/node-server/serve-static";
import { expect, test } from "vitest";
import * as z from "zod";
import { client, startBroker } from "../support/broker.ts";
import { stockQueue } from "../support/stock-queue.ts";

const shown = z.object({
  queues: z.array(
    z.object({
      name: z.string(),
      isPaused: z.boolean(),
      counts: z.record(z.string(), z.number()),
      jobs: z.array(z.object({ id: z.string(), data: z.object({ delegation_id: z.string() }) })),
    }),
  ),
});

async function setup() {
  const { url, db, clock, gateway } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1) ids.push(String((await api.delegate("scout")).body.id));
  const delayed = String((await api.delegate("scout", { delay_seconds: 3_600 })).body.id);
  const { queue } = await stockQueue(db, "scout");
  const serverAdapter = new HonoAdapter(serveStatic);
  createBullBoard({ queues: [new BullMQAdapter(queue)], serverAdapter });
  const board = serverAdapter.registerPlugin();
  const show = async (status: string) => {
    const answer = await board.request(`/api/queues?activeQueue=scout&status=${status}&page=1`);
    const [scout] = shown.parse(await answer.json()).queues;
    if (!scout) throw new Error("the board shows no queue");
    return scout;
  };
  const press = async (path: string) =>
    expect((await board.request(path, { method: "PUT" })).status).toBe(200);
  /** The delegations that a poll gets now. */
  const leased = async (): Promise<string[]> => {
    const { leases } = (await api.lease("scout", { wait_seconds: 0, max: 32 })).body;
    return leases.map((lease: { delegation: { id: string } }) => lease.delegation.id);
  };
  return { clock, gateway, ids, delayed, show, press, leased };
}

const sorted = (ids: readonly string[]) => [...ids].sort();

test("it counts and lists the delegations that wait, and those that are delayed", async () => {
  const { ids, delayed, show, leased } = await setup();
  const waiting = await show("prioritized");
  expect(waiting).toMatchObject({
    name: "scout",
    isPaused: false,
    counts: { prioritized: 3, delayed: 1, failed: 0 },
  });
  expect(sorted(waiting.jobs.map(({ data }) => data.delegation_id))).toEqual(sorted(ids));
  expect((await show("delayed")).jobs.map(({ data }) => data.delegation_id)).toEqual([delayed]);
  expect(sorted(await leased())).toEqual(sorted(ids));
  expect((await show("prioritized")).counts).toMatchObject({ prioritized: 0, active: 0, delayed: 1 });
});

test("its buttons pause and resume the queue; work that it empties comes back", async () => {
  const { ids, clock, gateway, show, press, leased } = await setup();
  await press("/api/queues/scout/pause");
  expect((await show("prioritized")).isPaused).toBe(true);
  expect(await leased()).toEqual([]);
  await press("/api/queues/scout/resume");
  await press("/api/queues/scout/empty");
  expect(await leased()).toEqual([]);
  clock.offset_ms += 61_000;
  await gateway.sweep.tick();
  expect(sorted(await leased())).toEqual(sorted(ids));
});
