/** A restore or a migration that has lost its lock stops before its next write. */
import { Redis } from "ioredis";
import { afterEach, expect, inject, onTestFinished, test, vi } from "vitest";
import type { OpenBackup } from "../../src/backup/backup-file.ts";
import { copyKeys } from "../../src/backup/migration/copy.ts";
import { grow } from "../../src/backup/migration/grow.ts";
import { deleteKeys, restore } from "../../src/backup/restore.ts";
import type { TransferLock } from "../../src/backup/transfer-lock.ts";
import { keys, shardKeys, transferKey } from "../../src/redis/keys.ts";
import { readLayout } from "../../src/redis/layout.ts";
import { shardOfName } from "../../src/redis/shards.ts";
import { freshDb } from "../support/broker.ts";
import { dump } from "../support/dump.ts";
import { emptyBackup } from "../support/empty-backup.ts";
import { beginGrowthAs } from "../support/mark.ts";

afterEach(() => vi.restoreAllMocks());

const NEVER = new AbortController().signal;

async function database() {
  const target = { socket: inject("redisSocket"), db: await freshDb() };
  const redis = new Redis(target.socket, { db: target.db });
  onTestFinished(() => redis.disconnect());
  return { redis, target };
}

/** A lock that is lost at a moment. */
const lockUntil = (isLost: () => Promise<boolean>): TransferLock => ({
  ...{ owner: "mine", signal: NEVER },
  requireHeld: async () => {
    if (await isLost()) throw new Error("lost");
  },
  renew: async () => {},
});
const LOST = lockUntil(async () => true);

const RESERVED = keys.idempotency("reserved");
const GROWTH = { from: 1, to: 4, at: 1_800_000_000_000 };

/** A growth that has begun: agents that move, the place of one that was deleted, and a key without a delegation. */
async function growing() {
  const { redis } = await database();
  const { agents, agent } = shardKeys(0);
  for (const name of ["a", "b", "c", "d", "e"]) {
    await redis.sadd(agents, name);
    await redis.hset(agent(name), "doc", name);
  }
  await redis.hset(keys.placed, "deleted", 0);
  await redis.set(RESERVED, `hash dlg_0_${"0".repeat(26)}`);
  await beginGrowthAs(redis, GROWTH, "mine");
  const layout = await readLayout(redis);
  return { redis, growOn: (lock: TransferLock) => grow(redis, GROWTH, layout, lock) };
}

test("a growth changes nothing more, whatever its step", async () => {
  const { redis, growOn } = await growing();
  const before = await dump(redis);
  await expect(growOn(LOST)).rejects.toThrow("lost");
  expect(await dump(redis)).toEqual(before);
  const left = async () => [await redis.hexists(keys.placed, "deleted"), await redis.exists(RESERVED)];
  const isMoved = async () =>
    (await redis.smembers(shardKeys(0).agents)).every((name) => shardOfName(name, GROWTH.to) === 0);
  expect(await isMoved()).toBe(false);
  await expect(growOn(lockUntil(isMoved))).rejects.toThrow("lost");
  expect([await isMoved(), ...(await left())]).toEqual([true, 1, 1]);
  await expect(growOn(lockUntil(async () => (await left())[0] === 0))).rejects.toThrow("lost");
  expect(await left()).toEqual([0, 1]);
  await growOn(lockUntil(async () => false));
  expect(await left()).toEqual([0, 0]);
});

test("a copy deletes and writes nothing more", async () => {
  const [{ redis: from }, { redis: to }] = [await database(), await database()];
  await from.hset(keys.tokens, "new", "1");
  await to.hset(keys.tokens, "old", "1");
  await expect(deleteKeys(to, LOST)).rejects.toThrow("lost");
  await expect(copyKeys(from, to, LOST, () => {})).rejects.toThrow("lost");
  expect(await to.hgetall(keys.tokens)).toEqual({ old: "1" });
});

/** A backup with as many keys as one batch has, and one more, before which `act` runs. */
async function twoBatches(redis: Redis, act: () => Promise<unknown>): Promise<OpenBackup> {
  await redis.set("value", "1");
  const dumped = await redis.dumpBuffer("value");
  // Without the version and the checksum.
  const value = dumped?.subarray(0, -10) ?? Buffer.alloc(0);
  const entry = (name: string) => ({ key: Buffer.from(`{errand}:${name}`), value, expiresAtMs: null });
  return {
    ...emptyBackup,
    async *entries() {
      for (let n = 0; n < 1_000; n += 1) yield entry(`first:${n}`);
      await act();
      yield entry("last");
    },
  };
}

test("a restore that was suspended between two batches writes no further one", async () => {
  const { redis, target } = await database();
  const now = Date.now();
  const backup = await twoBatches(redis, async () => {
    await redis.hset(transferKey, "owner", "other");
    vi.spyOn(Date, "now").mockImplementation(() => now + 60_000);
  });
  const options = { force: false, isExclusive: true, onProgress: () => {}, signal: NEVER };
  await expect(restore(target, backup, options)).rejects.toMatchObject({ reason: "taken_over" });
  expect(await redis.exists("{errand}:first:999", "{errand}:last")).toBe(1);
  expect((await readLayout(redis)).state).toBe("restoring");
});

test("a restore lets no broker start on what another command has begun to write", async () => {
  const { redis, target } = await database();
  const backup = await twoBatches(redis, () => redis.hset(keys.layout, "owner", "other"));
  const options = { force: false, isExclusive: true, onProgress: () => {}, signal: NEVER };
  await expect(restore(target, backup, options)).rejects.toMatchObject({ reason: "taken_over" });
  expect((await readLayout(redis)).state).toBe("restoring");
});
