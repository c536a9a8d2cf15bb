/**
 * The whole state of a Redis database, to compare before and after. Limit: without times to live, and without
 * presence, figures, and the meta data and checks of queues, which gateways write at any time.
 */
import type { Redis } from "../../src/redis/connect.ts";
import { mastersOf } from "../../src/redis/servers.ts";
import { fieldsOf } from "./record.ts";

/** The keys of every server. */
export async function keysIn(redis: Redis, pattern: string): Promise<string[]> {
  const servers = await mastersOf(redis);
  return (await Promise.all(servers.map((server) => server.keys(pattern)))).flat();
}

export async function dump(redis: Redis): Promise<Record<string, unknown>> {
  const all: Record<string, unknown> = {};
  for (const key of (await keysIn(redis, "*")).sort()) {
    if (/:(?:pollers:.*|workers:.*|gateways|seen|stats:.*|~[a-z]+:(?:meta|stalled-check))$/.test(key))
      continue;
    const type = await redis.type(key);
    if (type === "hash") all[key] = await fieldsOf(redis, key);
    else if (type === "zset") all[key] = await redis.zrange(key, "0", "-1", "WITHSCORES");
    else if (type === "set") all[key] = (await redis.smembers(key)).sort();
    else if (type === "list") all[key] = await redis.lrange(key, 0, -1);
    else if (type === "stream") all[key] = await redis.xrange(key, "-", "+");
    else all[key] = await redis.get(key);
  }
  return all;
}
