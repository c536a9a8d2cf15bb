/** How the sweep finds outages, and gives leases grace before any of them lapses. */
import { expect, test } from "vitest";
import { batchOf } from "../../../src/engine/upkeep/sweep.ts";
import { shardKeys } from "../../../src/redis/keys.ts";
import { timeOf } from "../../../src/redis/time.ts";
import { client, startBroker } from "../../support/broker.ts";
import { eventsOf } from "../../support/history.ts";
import { outage, passes } from "../../support/outage.ts";

const OUTAGE_MS = 30_000;

async function setup(spec: unknown = {}) {
  const broker = await startBroker({ shards: 1, outageMs: OUTAGE_MS });
  const api = client(broker.url);
  await api.agent("scout", spec);
  await broker.gateway.sweep.tick();
  return { ...broker, api };
}

const states = async ({ api }: Awaited<ReturnType<typeof setup>>): Promise<Record<string, number>> =>
  (await api.call("GET", "/v1/agents/scout")).body.counts;

test("after an outage, however many leases are due, each gets grace before one lapses, at every gateway", async () => {
  const world = await setup();
  const { api, gateway, another, clock } = world;
  const more = batchOf(1) + 20;
  for (let n = 0; n < more; n += 1) await api.delegate("scout");
  for (let left = more; left > 0; left -= 30) {
    const { body } = await api.lease("scout", { max: Math.min(30, left) });
    expect(body.leases.length).toBe(Math.min(30, left));
  }
  const second = await another();
  await outage(world, 600);
  await Promise.all([gateway.sweep.tick(), second.gateway.sweep.tick()]);
  expect(await states(world)).toMatchObject({ working: more, waiting: 0, delayed: 0 });
  clock.offset_ms += 59_000;
  await second.gateway.sweep.tick();
  expect(await states(world)).toMatchObject({ working: more });
  clock.offset_ms += 2_000;
  await gateway.sweep.tick();
  expect(await states(world)).toMatchObject({ working: 0 });
});

test("a short pause is no outage, and time without an outage gives no grace", async () => {
  const world = await setup();
  const { api, redis, gateway, clock } = world;
  await api.delegate("scout");
  await api.lease("scout");
  await outage(world, OUTAGE_MS / 1000 - 5);
  await gateway.sweep.tick();
  expect(await redis.exists(shardKeys(0).outages)).toBe(0);
  clock.offset_ms += 61_000;
  await gateway.sweep.tick();
  expect(await states(world)).toMatchObject({ working: 0, delayed: 1 });
});

test("a clock of Redis that is set back makes no outage, and signs of life go on by it", async () => {
  const { redis, gateway } = await setup();
  const { alive, outages } = shardKeys(0);
  const now = await timeOf(redis);
  await redis.set(alive, String(now + 600_000));
  await gateway.sweep.tick();
  expect(await redis.exists(outages)).toBe(0);
  expect(Number(await redis.get(alive))).toBeLessThan(now + 600_000);
});

test("the first start after a version without signs of life takes the newest event for one", async () => {
  const world = await setup();
  const { api, redis, gateway, clock } = world;
  const { id } = (await api.delegate("scout")).body;
  await api.lease("scout");
  await redis.del(shardKeys(0).alive);
  // As if all was written ten minutes ago.
  const events = await redis.xrange(shardKeys(0).events, "-", "+");
  await redis.del(shardKeys(0).events);
  for (const [at, fields] of events)
    await redis.xadd(shardKeys(0).events, String(Number(at.split("-")[0]) - 600_000), ...fields);
  clock.offset_ms += 600_000;
  await gateway.sweep.tick();
  expect((await api.get(id)).body).toMatchObject({ state: "working", attempt: 1 });
});

test("beside a gateway of a version without signs of life a lease lapses in time, and one period late after it served alone", async () => {
  const world = await setup();
  const { redis, gateway, another, clock } = world;
  // It never sweeps, so it gives no sign of life.
  const older = client((await another()).url);
  const leased = async () => {
    const id = String((await older.delegate("scout")).body.id);
    return { id, lease: String((await older.lease("scout")).body.leases[0].lease_id) };
  };
  const [living, dead] = [await leased(), await leased()];
  await redis.del(shardKeys(0).alive);
  await gateway.sweep.tick();
  await passes(world, 40);
  await older.heartbeat(living.lease);
  await passes(world, 30);
  expect((await older.get(living.id)).body).toMatchObject({ state: "working", attempt: 1 });
  expect((await older.get(dead.id)).body).toMatchObject({ state: "submitted", attempt: 2 });

  const start = clock.offset_ms;
  await outage(world, 600);
  for (clock.offset_ms = start; clock.offset_ms < start + 600_000; clock.offset_ms += 30_000)
    expect((await older.heartbeat(living.lease)).status).toBe(200);
  const late = await leased();
  await older.heartbeat(living.lease);
  await gateway.sweep.tick();
  await passes(world, 30);
  await older.heartbeat(living.lease);
  expect((await older.get(late.id)).body).toMatchObject({ state: "working", attempt: 1 });
  for (let n = 0; n < 2; n += 1) {
    await passes(world, 30);
    await older.heartbeat(living.lease);
  }
  expect((await older.get(late.id)).body).toMatchObject({ state: "submitted", attempt: 2 });
  expect((await older.get(living.id)).body).toMatchObject({ state: "working", attempt: 1 });
  const away = async (id: string) =>
    (await eventsOf(older, id)).filter(({ status }) => status === "broker_away");
  expect([await away(living.id), await away(dead.id)]).toEqual([[], []]);
  expect((await away(late.id)).length).toBeLessThanOrEqual(1);
});

test("only the newest outages are kept", async () => {
  const world = await setup();
  for (let n = 0; n < 12; n += 1) {
    await outage(world, 60);
    await world.gateway.sweep.tick();
  }
  const kept = await world.redis.lrange(shardKeys(0).outages, 0, -1);
  expect(kept).toHaveLength(8);
  const [from = 0, to = 0] = (kept.at(-1) ?? "").split(" ").map(Number);
  expect(Math.round((to - from) / 1000)).toBe(60);
});
