/**
 * Reads single events of delegations by their numbers. Limit: as many as fit into one read; the caller reads on.
 */
import * as z from "zod";
import { type Entry, toEntry } from "../../events/entry.ts";
import { READ_BYTES } from "../../events/stored.ts";
import { Script } from "../../redis/script.ts";
import type { BulkReads } from "../broker.ts";

/** An event: its delegation, and its number in it, from 1. */
export interface EventPlace {
  readonly id: string;
  readonly seq: number;
}

/**
 * KEYS: the events of delegations · ARGV: most bytes, then a number for each key · Returns the ids and texts in turn, of the
 * first ones that fit; empty texts where there is no such event.
 */
const eventsAtScript = new Script(`#!lua flags=no-writes
local found, size = {}, 0
for i, key in ipairs(KEYS) do
  local seq = tonumber(ARGV[i + 1])
  local event = seq > 0 and redis.call('LRANGE', key, 2 * seq - 2, 2 * seq - 1) or {}
  size = size + #(event[2] or '')
  if i > 1 and size > tonumber(ARGV[1]) then break end
  found[2 * i - 1], found[2 * i] = event[1] or '', event[2] or ''
end
return found`);
const foundSchema = z.array(z.string());

/** The most events of one read. */
const MOST = 100;

/** The first of the events that fit into one read of each shard, at least one; null where there is none. */
export async function readEventsAt(
  { bulk, shards }: BulkReads,
  places: readonly EventPlace[],
): Promise<(Entry | null)[]> {
  const some = places.slice(0, MOST);
  const read = new Map<EventPlace, Entry | null>();
  await Promise.all(
    shards.all.map(async (shard, number) => {
      const here = some.filter(({ id }) => shards.ofId(id) === shard);
      if (here.length === 0) return;
      const keys = here.map(({ id }) => shard.delegationEvents(id));
      const args = [READ_BYTES, ...here.map(({ seq }) => seq)];
      const flat = foundSchema.parse(await eventsAtScript.run(bulk, keys, args));
      for (const [at, place] of here.slice(0, flat.length / 2).entries()) {
        const [id = "", text = ""] = flat.slice(2 * at, 2 * at + 2);
        read.set(place, text === "" ? null : toEntry(number, id, ["e", text]));
      }
    }),
  );
  const end = some.findIndex((place) => !read.has(place));
  return some.slice(0, end === -1 ? some.length : end).map((place) => read.get(place) ?? null);
}
