/** The mark of a restore or a migration, as another command writes it. */
import type { Redis } from "../../src/redis/connect.ts";
import { transferKey } from "../../src/redis/keys.ts";
import { beginGrowth, type Growth, markRestoring } from "../../src/redis/layout.ts";

/** Only the holder of the lock may mark. This lock has ended for others. */
async function asHolder(redis: Redis, owner: string, mark: () => Promise<unknown>): Promise<void> {
  await redis.hset(transferKey, "owner", owner);
  await mark();
  await redis.hdel(transferKey, "owner");
}

export const markAs = (redis: Redis, owner: string) =>
  asHolder(redis, owner, () => markRestoring(redis, owner));

export const beginGrowthAs = (redis: Redis, growth: Growth, owner: string) =>
  asHolder(redis, owner, () => beginGrowth(redis, growth, owner));
