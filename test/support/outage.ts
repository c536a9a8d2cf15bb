/**
 * An outage of the whole broker, by the injected clock: for this long no gateway gave a sign of life. It ends with the
 * next `sweep.tick()`.
 */
import type { Redis } from "../../src/redis/connect.ts";
import { shardKeys } from "../../src/redis/keys.ts";

interface World {
  readonly redis: Redis;
  readonly clock: { offset_ms: number };
}

export async function outage({ redis, clock }: World, seconds: number, shards = 1): Promise<void> {
  const [s = 0, us = 0] = (await redis.time()).map(Number);
  clock.offset_ms += seconds * 1000;
  const last = s * 1000 + Math.floor(us / 1000) - seconds * 1000;
  for (let shard = 0; shard < shards; shard += 1) await redis.set(shardKeys(shard).alive, String(last));
}
