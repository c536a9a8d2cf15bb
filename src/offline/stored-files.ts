/** The stored files that the data of a broker names, and which of them have no content. */
import type { FileStore } from "../engine/files/store.ts";
import { connect, type Redis, type RedisTarget } from "../redis/connect.ts";
import { keys } from "../redis/keys.ts";
import { ownKeys } from "../redis/own-keys.ts";

/** How many files have no content in the store, or not all of it; null if the store does not answer. */
export async function countMissing(target: RedisTarget, store: FileStore | null): Promise<number | null> {
  const redis = connect(target, "commands");
  redis.on("error", () => undefined);
  try {
    const sizes = await sizesByName(redis);
    // A bucket is not asked for nothing.
    if (store === null || sizes.size === 0) return sizes.size;
    for await (const { name, size } of store.contents()) if (sizes.get(name) === size) sizes.delete(name);
    return [...sizes.values()].filter((size) => size > 0).length;
  } catch {
    return null;
  } finally {
    redis.disconnect();
  }
}

/** The sizes of all files by the names of their contents. */
export async function sizesByName(redis: Redis): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  for await (const { server, names } of ownKeys(redis, `${keys.files}:file:*`)) {
    const pipeline = server.pipeline();
    for (const name of names) pipeline.hmget(name, "name", "size");
    for (const [error, row] of (await pipeline.exec()) ?? []) {
      if (error) throw error;
      const [name, size] = Array.isArray(row) ? row.map(String) : [];
      if (name !== undefined) sizes.set(name, Number(size));
    }
  }
  return sizes;
}
