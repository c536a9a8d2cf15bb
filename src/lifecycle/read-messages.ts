/** Reads the messages of a delegation alone: its other fields, its artifacts and its reply may be much larger. */
import { z } from "zod";
import type { Redis } from "../redis/connect.ts";
import { Script } from "../redis/script.ts";
import type { Shards } from "../redis/shards.ts";

/** KEYS: the record, its history · Returns its message and its history. */
const messagesScript = new Script(`#!lua flags=no-writes
return { redis.call('HGET', KEYS[1], 'message'), redis.call('LRANGE', KEYS[2], 0, -1) }`);
const messagesSchema = z.tuple([z.string().nullable(), z.array(z.string())]);

/** JSON texts: the task, then its history, of which a text may have several messages, comma separated. Null: no record. */
export async function readMessages(
  redis: Redis,
  shards: Shards,
  id: string,
): Promise<readonly string[] | null> {
  const keys = shards.ofId(id);
  if (!keys) return null;
  const read = await messagesScript.run(redis, [keys.delegation(id), keys.history(id)], []);
  const [message, history] = messagesSchema.parse(read);
  return message === null ? null : [message, ...history];
}
