/** A delegation's own events as they are stored, and as an older version stored them. */
import type { Redis } from "../../src/redis/connect.ts";

const keyOf = (id: string) => `{errand:0}:d:${id}:events`;

/** Id and text of each, oldest first. */
export async function ownEvents(redis: Redis, id: string): Promise<[id: string, text: string][]> {
  const flat = await redis.lrange(keyOf(id), 0, -1);
  return flat.flatMap((one, at) => (at % 2 === 0 ? [[one, flat[at + 1] ?? ""] as [string, string]] : []));
}

/** Replaces the list of events by the stream that versions before the list wrote. */
export async function storeAsStream(redis: Redis, id: string): Promise<void> {
  const events = await ownEvents(redis, id);
  await redis.del(keyOf(id));
  for (const [event, text] of events) await redis.xadd(keyOf(id), event, "e", text);
}
