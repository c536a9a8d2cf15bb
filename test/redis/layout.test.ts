/** Gateways never work on data of another layout. */
import { expect, onTestFinished, test, vi } from "vitest";
import { PresenceTracker } from "../../src/engine/agents/presence.ts";
import { keys } from "../../src/redis/keys.ts";
import { checkLayout, countAlive, LayoutError } from "../../src/redis/layout.ts";
import { startBroker } from "../support/broker.ts";
import { markAs } from "../support/mark.ts";

async function setup() {
  const { gateway, redis } = await startBroker();
  await gateway.close();
  return { redis };
}

test("the first gateway writes the layout once", async () => {
  const { redis } = await setup();
  const stored = await redis.hgetall(keys.layout);
  expect(stored).toEqual({ version: "1", shards: "1", broker: expect.stringMatching(/^brk_/) });
  const { brokerId } = await checkLayout(redis, 1);
  expect(brokerId).toBe(stored.broker);
  expect(await redis.hgetall(keys.layout)).toEqual(stored);
});

test.each([
  ["2", /has layout version 2, .* reads layout version 1/],
  ["", /has no layout version/],
])("data of another layout version (%j) is refused, and stays as it is", async (version, why) => {
  const { redis } = await setup();
  if (version === "") await redis.hdel(keys.layout, "version");
  else await redis.hset(keys.layout, "version", version);
  const stored = await redis.hgetall(keys.layout);
  await expect(checkLayout(redis, 1)).rejects.toThrow(why);
  await expect(checkLayout(redis, 2)).rejects.toThrow(LayoutError);
  expect(await redis.hgetall(keys.layout)).toEqual(stored);
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
  const { requireUnchanged } = await checkLayout(redis, 1);
  await requireUnchanged();
  await redis.hset(keys.placed, "scout", 0);
  await expect(requireUnchanged()).rejects.toThrow(/restored or migrated while this gateway started/);
  await redis.del(keys.placed);
  await requireUnchanged();
  await redis.hset(keys.layout, "earlier", '[{"count":1,"until":1}]');
  await expect(requireUnchanged()).rejects.toThrow(LayoutError);
});
