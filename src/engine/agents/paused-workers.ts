/**
 * The workers that paused, because they fail or cannot work: stored with presence, in the hash of when agents were last
 * seen. Limit: for display only; the newest of each agent are kept, and each until its pause is over.
 */
import * as z from "zod";
import type { Redis } from "../../redis/connect.ts";
import { pausedField } from "../../redis/keys.ts";
import { Script } from "../../redis/script.ts";
import type { Shards } from "../../redis/shards.ts";
import type { Worker } from "../../schema/agent.ts";
import type { WorkerPause } from "../../schema/lease.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Presence } from "../../schema/presence.ts";
import { toInstant } from "../../schema/values.ts";

const MOST = LIMITS.paused_workers.value;
/** Pauses of all agents that are recorded between two writes; more are left out. */
const MAX_BUFFERED = 1_000;

const storedSchema = z.array(
  z.object({ id: z.string(), at: z.number(), until: z.number(), reason: z.string() }),
);
export type StoredPause = z.infer<typeof storedSchema>[number];

/**
 * KEYS: the shard's `seen` · ARGV: now (ms), how many are kept; then for each pause the field of its agent, its worker and
 * its JSON. A later pause of a worker replaces the one before.
 */
const pausesScript = new Script(`#!lua flags=allow-oom
local now, most = tonumber(ARGV[1]), tonumber(ARGV[2])
for at = 3, #ARGV, 3 do
  local field, worker = ARGV[at], ARGV[at + 1]
  local kept = {}
  for _, pause in ipairs(cjson.decode(redis.call('HGET', KEYS[1], field) or '[]')) do
    if pause['until'] > now and pause.id ~= worker then kept[#kept + 1] = pause end
  end
  local new = cjson.decode(ARGV[at + 2])
  if new['until'] > now then kept[#kept + 1] = new end
  while #kept > most do table.remove(kept, 1) end
  if #kept == 0 then redis.call('HDEL', KEYS[1], field) else redis.call('HSET', KEYS[1], field, cjson.encode(kept)) end
end`);

/** The pauses that are not over, oldest first. */
export function pausesIn(stored: string | null | undefined, now = Date.now()): readonly StoredPause[] {
  if (!stored) return [];
  return storedSchema.parse(JSON.parse(stored)).filter(({ until }) => until > now);
}

/** For everybody, so without the names of workers. */
export function toPaused(pauses: readonly StoredPause[]): Presence["paused"] {
  const newest = pauses.at(-1);
  if (newest === undefined) return undefined;
  const until = toInstant(Math.min(...pauses.map((one) => one.until)));
  return { workers: pauses.length, until, reason: newest.reason };
}

export const toWorkerPause = ({ until, reason }: StoredPause): Worker["paused"] => ({
  until: toInstant(until),
  reason,
});

/** Pauses that this gateway was told of since the last write. */
export class PausedWorkers {
  #told = new Map<string, Map<string, StoredPause>>();
  #size = 0;

  add(agent: string, { id, paused_seconds, reason }: WorkerPause): void {
    const workers = this.#told.get(agent) ?? new Map<string, StoredPause>();
    if (!workers.has(id)) {
      if (this.#size === MAX_BUFFERED) return;
      this.#size += 1;
    }
    const at = Date.now();
    this.#told.set(agent, workers.set(id, { id, at, until: Math.round(at + paused_seconds * 1000), reason }));
  }

  async write(redis: Redis, shards: Shards): Promise<void> {
    if (this.#size === 0) return;
    const written = this.#told;
    this.#told = new Map();
    this.#size = 0;
    for (const [keys, ofShard] of shards.groupByShard(written, ([agent]) => agent)) {
      const args = ofShard.flatMap(([agent, workers]) =>
        [...workers].slice(-MOST).flatMap(([id, pause]) => [pausedField(agent), id, JSON.stringify(pause)]),
      );
      await pausesScript.run(redis, [keys.seen], [Date.now(), MOST, ...args]);
    }
  }
}
