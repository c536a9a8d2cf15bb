/**
 * Reads a hash, or a field of it, and a mark of the same slot in one step, for util/marked-cache.ts. Uses scripts,
 * because Redis refuses a MULTI at full memory.
 */
import * as z from "zod";
import type { Marked } from "../util/marked-cache.ts";
import type { Redis } from "./connect.ts";
import { Script } from "./script.ts";
import { randomId } from "./shards.ts";

/** KEYS: hash, mark · ARGV: field */
const fieldScript = new Script(`#!lua flags=allow-oom,no-writes
return {redis.call('HGET', KEYS[1], ARGV[1]), redis.call('GET', KEYS[2])}`);

/** KEYS: hash, mark */
const hashScript = new Script(`#!lua flags=allow-oom,no-writes
return {redis.call('HGETALL', KEYS[1]), redis.call('GET', KEYS[2])}`);

const markSchema = z.string().nullable();
const fieldSchema = z.tuple([z.string().nullable(), markSchema]);
const hashSchema = z.tuple([z.array(z.string()), markSchema]);

/** For a change: no other mark is equal to it. */
export const newMark = (): string => randomId(16);

/** The field of a hash; null if there is none. */
export async function readMarkedField(
  redis: Redis,
  hash: string,
  field: string,
  mark: string,
): Promise<Marked<string>> {
  const [value, found] = fieldSchema.parse(await fieldScript.run(redis, [hash, mark], [field]));
  return { value, mark: found };
}

/** All fields of a hash. */
export async function readMarkedHash(
  redis: Redis,
  hash: string,
  mark: string,
): Promise<{ readonly fields: Readonly<Record<string, string>>; readonly mark: string | null }> {
  const [flat, found] = hashSchema.parse(await hashScript.run(redis, [hash, mark], []));
  const fields: Record<string, string> = {};
  for (let at = 0; at < flat.length; at += 2) fields[flat[at] ?? ""] = flat[at + 1] ?? "";
  return { fields, mark: found };
}
