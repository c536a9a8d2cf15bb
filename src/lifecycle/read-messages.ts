/** Reads some messages of a delegation: the others, its other fields, its artifacts and its reply may be much larger. */
import * as z from "zod";
import type { Redis } from "../redis/connect.ts";
import { Script } from "../redis/script.ts";
import type { Shards } from "../redis/shards.ts";

/** KEYS: the record, its history · ARGV: parts · Returns its message, '' if it has no such part, and of its history. */
const messagesScript = new Script(`#!lua flags=no-writes
local function has_part(text)
  for _, part in ipairs(ARGV) do if string.find(text, part, 1, true) then return true end end
  return false
end
local task = redis.call('HGET', KEYS[1], 'message')
local history = {}
for _, text in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
  if has_part(text) then history[#history + 1] = text end
end
return { task and (has_part(task) and task or ''), history }`);
const messagesSchema = z.tuple([z.string().nullable(), z.array(z.string())]);

/** JSON texts of messages. A text of the history may have several, comma separated. */
export interface MessageTexts {
  readonly task: string | null;
  readonly history: readonly string[];
}

/** The texts that contain one of these parts; the others are not transferred. Null: no record. */
export async function readMessages(
  redis: Redis,
  shards: Shards,
  id: string,
  parts: readonly string[],
): Promise<MessageTexts | null> {
  const keys = shards.ofId(id);
  if (!keys) return null;
  const read = await messagesScript.run(redis, [keys.delegation(id), keys.history(id)], parts);
  const [task, history] = messagesSchema.parse(read);
  return task === null ? null : { task: task === "" ? null : task, history };
}
