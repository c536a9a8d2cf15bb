/**
 * An outage of the whole broker, by the injected clock: for this long no gateway gave a sign of life. It ends with the
 * next `sweep.tick()`.
 */
import type { Redis } from "../../src/redis/connect.ts";
import { shardKeys } from "../../src/redis/keys.ts";
import { timeOf } from "../../src/redis/time.ts";

interface World {
  readonly redis: Redis;
  readonly clock: { offset_ms: number };
}

interface Swept extends World {
  readonly gateway: { readonly sweep: { readonly tick: () => Promise<number> } };
}

export async function outage({ redis, clock }: World, seconds: number, shards = 1): Promise<void> {
  clock.offset_ms += seconds * 1000;
  await giveSigns(redis, seconds, shards);
}

/**
 * This time passes while the gateways live, and what is due then is done: also what is due only after another due move. The
 * sign of life is given before, because a stall of the test is no outage.
 */
export async function passes({ redis, clock, gateway }: Swept, seconds: number, shards = 1): Promise<void> {
  clock.offset_ms += seconds * 1000;
  await giveSigns(redis, 0, shards);
  while ((await gateway.sweep.tick()) > 0);
}

/** As if all shards had their newest sign of life so long ago, by Redis' own clock. */
async function giveSigns(redis: Redis, secondsAgo: number, shards: number): Promise<void> {
  const at = (await timeOf(redis)) - secondsAgo * 1000;
  for (let shard = 0; shard < shards; shard += 1) await redis.set(shardKeys(shard).alive, String(at));
}
