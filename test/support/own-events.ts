/** A delegation's own events as they are stored. */
import type { Redis } from "../../src/redis/connect.ts";

const keyOf = (id: string) => `{errand:0}:d:${id}:events`;

/** Id and text of each, oldest first. */
export async function ownEvents(redis: Redis, id: string): Promise<[id: string, text: string][]> {
  const flat = await redis.lrange(keyOf(id), 0, -1);
  return flat.flatMap((one, at) => (at % 2 === 0 ? [[one, flat[at + 1] ?? ""] as [string, string]] : []));
}
