/** Gateways of this version and of older ones never work on the same data. */
import { expect, onTestFinished, test, vi } from "vitest";
import { PresenceTracker } from "../../src/engine/agents/presence.ts";
import { keys, shardKeys } from "../../src/redis/keys.ts";
import { checkLayout, countAlive, LayoutError } from "../../src/redis/layout.ts";
import { client, startBroker } from "../support/broker.ts";
import { markAs } from "../support/mark.ts";

async function setup() {
  const { gateway, redis } = await startBroker();
  await gateway.close();
  const mark = await redis.hget(keys.layout, "shards");
  await redis.hset(keys.layout, "shards", "1");
  return { redis, mark };
}

test("a gateway of an older version, which compares numbers, refuses the data", async () => {
  const { mark } = await setup();
  expect(mark).toMatch(/^1, /);
  expect(Number(mark)).toBeNaN();
});

test("data of an older version is taken over once its gateways are gone, also killed ones", async () => {
  const { redis, mark } = await setup();
  await redis.zadd(keys.gateways, Date.now(), "killed");
  await checkLayout(redis, 1, 300);
  expect(await redis.hget(keys.layout, "shards")).toBe(mark);
  // From then on other gateways may run.
  await redis.zadd(keys.gateways, Date.now() + 60_000, "alive");
  await checkLayout(redis, 1, 300);
});

test("while an older gateway lives, the start is refused and the data stays as it is", async () => {
  const { redis } = await setup();
  await redis.zadd(keys.gateways, Date.now() + 60_000, "alive");
  await expect(checkLayout(redis, 1)).rejects.toThrow(/Stop all gateways/);
  expect(await redis.hget(keys.layout, "shards")).toBe("1");
});

test("data of the first development versions is refused, and stays as it is", async () => {
  const { redis } = await setup();
  const record = shardKeys(0).delegation("dlg_0_1");
  await redis.hset(record, { state: "submitted", task_preview: "plain text" });
  await expect(checkLayout(redis, 1)).rejects.toThrow(/development version/);
  await redis.hset(record, { task_preview: '"JSON"' });
  await redis.rpush(shardKeys(0).artifacts("dlg_0_1"), "{}");
  await expect(checkLayout(redis, 1)).rejects.toThrow(/development version/);
  expect(await redis.hget(keys.layout, "shards")).toBe("1");
});

test("an agent and a context named artifacts are no data of the first development versions", async () => {
  const { gateway, redis, url } = await startBroker();
  const api = client(url);
  await api.agent("artifacts");
  const { status } = await api.delegate("artifacts", { context_id: "artifacts" });
  expect(status).toBe(202);
  expect((await api.lease("artifacts")).body.leases).toHaveLength(1);
  await gateway.close({ idleGrace: false });
  expect((await redis.keys("{errand:0}:list:*:artifacts")).length).toBeGreaterThan(1);
  await redis.hset(keys.layout, "shards", "1");
  await checkLayout(redis, 1, 300);
});

test("another number of shards is refused", async () => {
  const { redis } = await setup();
  await expect(checkLayout(redis, 2)).rejects.toThrow(/ERRAND_SHARDS=1, not 2/);
});

test("a gateway is alive, whatever the clock of this machine or its own says", async () => {
  const { redis } = await setup();
  expect(await countAlive(redis, 60_000)).toBe(0);
  await redis.zadd(keys.gateways, Date.now(), "recent");
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
  onTestFinished(() => void vi.useRealTimers());
  expect(await countAlive(redis, 60_000)).toBe(1);
  await redis.zadd(keys.gateways, 1_000, "recent");
  await redis.zadd(keys.gateways, 5e12, "ahead");
  expect(await countAlive(redis, 300)).toBe(0);
  let isCounted = false;
  const counted = countAlive(redis, 60_000).finally(() => {
    isCounted = true;
  });
  while (!isCounted) await redis.zincrby(keys.gateways, 5_000, "recent");
  expect(await counted).toBe(1);
});

test("a gateway that found the data complete, and signs on after a migration has marked it, stops again", async () => {
  const { gateway, redis, another } = await startBroker();
  await gateway.close();
  const start = PresenceTracker.prototype.start;
  const late = vi.spyOn(PresenceTracker.prototype, "start").mockImplementation(async function (
    this: PresenceTracker,
  ) {
    await markAs(redis, "restore");
    // It looks for gateways here, and finds none.
    expect(await redis.zcard(keys.gateways)).toBe(0);
    await start.call(this);
    expect(await redis.zcard(keys.gateways)).toBe(1);
  });
  onTestFinished(() => late.mockRestore());
  await expect(another()).rejects.toThrow(LayoutError);
  expect(late).toHaveBeenCalledOnce();
  expect(await redis.zcard(keys.gateways)).toBe(0);
});

test("a layout of the same number of shards is another one if agents were placed or numbers were added", async () => {
  const { redis } = await setup();
  const { requireUnchanged } = await checkLayout(redis, 1, 300);
  await requireUnchanged();
  await redis.hset(keys.placed, "scout", 0);
  await expect(requireUnchanged()).rejects.toThrow(/restored or migrated while this gateway started/);
  await redis.del(keys.placed);
  await requireUnchanged();
  await redis.hset(keys.layout, "earlier", '[{"count":1,"until":1}]');
  await expect(requireUnchanged()).rejects.toThrow(LayoutError);
});
