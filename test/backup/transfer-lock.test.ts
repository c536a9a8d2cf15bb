/** The lock of a restore or a migration is renewed while its command runs, and its loss stops the command. */
import { Redis } from "ioredis";
import { afterEach, expect, inject, onTestFinished, test, vi } from "vitest";
import { requireNoTransfer, withTransferLock } from "../../src/backup/transfer-lock.ts";
import { transferKey } from "../../src/redis/keys.ts";
import { freshDb } from "../support/broker.ts";
import { until } from "../support/until.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function connected() {
  const redis = new Redis(inject("redisSocket"), { db: await freshDb() });
  onTestFinished(() => redis.disconnect());
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  return redis;
}
const NEVER = new AbortController().signal;

test("it is renewed every five seconds, also when it is late, and released at the end", async () => {
  const redis = await connected();
  const expiresAt = async () => Number(await redis.hget(transferKey, "expires_at"));
  const done = await withTransferLock(redis, NEVER, async ({ signal, renew }) => {
    await expect(requireNoTransfer(redis)).rejects.toMatchObject({ reason: "in_progress" });
    await redis.hset(transferKey, "expires_at", 1);
    await requireNoTransfer(redis);
    vi.advanceTimersByTime(5_000);
    await until(async () => (await expiresAt()) > 1);
    await expect(withTransferLock(redis, NEVER, async () => 1)).rejects.toMatchObject({
      reason: "in_progress",
    });
    await renew();
    return signal.aborted;
  });
  expect([done, await redis.exists(transferKey)]).toEqual([false, 0]);
});

test.each([
  ["another command has it", (redis: Redis) => redis.hset(transferKey, "owner", "other")],
  ["another command had it and has ended", (redis: Redis) => redis.del(transferKey)],
])("%s: the command is stopped", async (_, lose) => {
  const redis = await connected();
  const stopped = withTransferLock(redis, NEVER, async ({ signal }) => {
    await lose(redis);
    vi.advanceTimersByTime(5_000);
    await until(() => signal.aborted);
    signal.throwIfAborted();
  });
  await expect(stopped).rejects.toMatchObject({ reason: "taken_over" });
});

test("a stop of the command stops its work, and frees the lock", async () => {
  const redis = await connected();
  const stop = new AbortController();
  const stopped = withTransferLock(redis, stop.signal, async ({ signal }) => {
    stop.abort(new Error("Ctrl-C"));
    signal.throwIfAborted();
  });
  await expect(stopped).rejects.toThrow("Ctrl-C");
  await requireNoTransfer(redis);
});

test.each([
  ["forth", 10_001],
  ["back", -1],
])(
  "a process that was suspended, so that the clock jumps %s, does not write without the lock",
  async (_, by) => {
    const redis = await connected();
    let now = Date.now();
    vi.spyOn(Date, "now").mockImplementation(() => now);
    const written: string[] = [];
    const stopped = withTransferLock(redis, NEVER, async ({ requireHeld }) => {
      await redis.hset(transferKey, "owner", "other");
      // Renewed a moment ago: the lock is not read before every batch.
      await requireHeld();
      written.push("first");
      now += by;
      await requireHeld();
      written.push("second");
    });
    await expect(stopped).rejects.toMatchObject({ reason: "taken_over" });
    expect(written).toEqual(["first"]);
  },
);
