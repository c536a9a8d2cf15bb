/** The tickets that the sweep makes again: those that no poll would get, and no others. */
import { expect, test, vi } from "vitest";
import { batchOf } from "../../../src/engine/upkeep/sweep.ts";
import { client, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

const CHECK_MS = 6_000;

/** A delegation whose worker died: its lease expired, and the backoff before the next attempt is over. */
async function setup() {
  const { url, gateway, redis, clock, log } = await startBroker();
  const api = client(url);
  await api.agent("scout", { backoff: { initial_ms: 20, max_ms: 20, jitter: 0 } });
  const { id } = (await api.delegate("scout")).body;
  await api.lease("scout", { lease_seconds: 1 });
  clock.offset_ms += 2_000;
  await gateway.sweep.tick();
  const delayed = "{errand:0}:q:scout:delayed";
  const [ticket = "", score = ""] = await redis.zrange(delayed, "0", "0", "WITHSCORES");
  await until(async () => Number((await redis.time())[0]) > Number(score) / 0x1000 / 1000, {
    what: "the backoff",
  });
  const remade = async () => (await gateway.broker.metrics.ticketsRemade.get()).values[0]?.value ?? 0;
  const check = async () => {
    clock.offset_ms += CHECK_MS;
    await gateway.sweep.tick();
  };
  const alarms = () => log.filter((line) => line.includes("lost ticket")).length;
  return { api, redis, id, delayed, ticket, remade, check, alarms };
}

test("a tick waits for one that is under way and took what is due", async () => {
  const { url, gateway, clock, log } = await startBroker({ sweepEveryMs: 0 });
  const api = client(url);
  await api.agent("scout");
  await api.delegate("scout");
  await api.lease("scout", { lease_seconds: 1 });
  clock.offset_ms += 2_000;
  const first = gateway.sweep.tick();
  await gateway.sweep.tick();
  expect(log.filter((line) => line.includes("swept"))).toHaveLength(1);
  await first;
});

test("a delivery that hangs keeps nothing else from being swept", async () => {
  const { url, gateway, clock } = await startBroker({ sweepEveryMs: 20 });
  const api = client(url);
  await api.agent("scout");
  const hanging = vi.spyOn(gateway.broker, "deliverPending").mockImplementation(() => new Promise(() => {}));
  const expires = async () => {
    const { id } = (
      await api.delegate("scout", { callback: { url: "https://example.com/" }, ttl_seconds: 1 })
    ).body;
    clock.offset_ms += 2_000;
    await until(async () => (await api.get(id)).body.state === "failed");
  };
  await expires();
  await until(() => hanging.mock.calls.length === 1);
  clock.offset_ms += 60_000;
  await until(() => hanging.mock.calls.length === 2);
  await expires();
});

test("a shard that cannot be swept does not keep the others from it", async () => {
  const { url, gateway, clock, redis, log } = await startBroker({ sweepEveryMs: 20, shards: 2 });
  const { shards } = gateway.broker;
  const name = ["a", "b", "c", "d", "e", "f"].find((one) => shards.indexOfAgent(one) === 1) ?? "";
  const api = client(url);
  await api.agent(name);
  const { id } = (await api.delegate(name)).body;
  await api.lease(name, { lease_seconds: 1 });
  await redis.set(shards.at(0).due, "not a sorted set");
  clock.offset_ms += 2_000;
  await until(async () => (await api.get(id)).body.state === "submitted", { what: "the end of the lease" });
  expect(log.some((line) => line.includes("sweep interrupted"))).toBe(true);
});

test("all shards together sweep about as many records at once as one alone", async () => {
  expect([1, 4, 16, 256].map(batchOf)).toEqual([100, 25, 6, 4]);
  const { url, gateway, clock } = await startBroker({ shards: 20 });
  const { broker } = gateway;
  const api = client(url);
  await api.agent("scout");
  const ids = Array.from(
    { length: 12 },
    async () => (await api.delegate("scout", { ttl_seconds: 1 })).body.id,
  );
  await Promise.all(ids);
  const move = broker.writer.move.bind(broker.writer);
  let [now, most] = [0, 0];
  vi.spyOn(broker.writer, "move").mockImplementation(async (...args) => {
    now += 1;
    most = Math.max(most, now);
    return move(...args).finally(() => {
      now -= 1;
    });
  });
  clock.offset_ms += 2_000;
  expect(await gateway.sweep.tick()).toBe(12);
  expect(most).toBe(5);
  expect((await api.get(await (ids[0] ?? ""))).body.state).toBe("failed");
});

test("a delayed ticket that is due is not lost: the next poll gets it", async () => {
  const { api, id, remade, check, alarms } = await setup();
  await check();
  expect([await remade(), alarms()]).toEqual([0, 0]);
  const [lease] = (await api.lease("scout", { wait_seconds: 0 })).body.leases;
  expect(lease).toMatchObject({ attempt: 2, delegation: { id } });
});

test("a ticket that is gone, or delayed by a wrong clock, is made again", async () => {
  const { api, redis, id, delayed, ticket, remade, check, alarms } = await setup();
  await redis.zadd(delayed, (Date.now() + 3_600_000) * 0x1000, ticket);
  await check();
  expect([await remade(), alarms()]).toEqual([1, 1]);
  const queue = "{errand:0}:q:scout";
  const [again = ""] = await redis.zrange(`${queue}:prioritized`, "0", "0");
  await redis.del(`${queue}:${again}`, `${queue}:prioritized`);
  await check();
  expect([await remade(), alarms()]).toEqual([2, 2]);
  const [lease] = (await api.lease("scout", { wait_seconds: 0 })).body.leases;
  expect(lease).toMatchObject({ attempt: 2, delegation: { id } });
});
