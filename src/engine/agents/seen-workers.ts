/**
 * The workers that polled this gateway, written to Redis in the background together with presence. Limit: for display
 * only; the oldest are dropped beyond the limit.
 */
import type { Redis } from "../../redis/connect.ts";
import { Script } from "../../redis/script.ts";
import type { Shards } from "../../redis/shards.ts";
import { LIMITS } from "../../schema/limits.ts";

const MOST = LIMITS.workers.value;
export const WORKERS_KEPT_MS = LIMITS.worker_seconds.value * 1000;
/** Workers of all agents that are recorded between two writes; more are left out. */
const MAX_BUFFERED = 10_000;

/** How many agents' workers one script writes, so that it does not block Redis for long. */
const AGENTS_AT_ONCE = 500;

/**
 * KEYS: workers of agents · ARGV: how many are kept, and for how long (ms); then for each key the number of its values,
 * and the values: times, ids.
 */
const seenScript = new Script(`#!lua
local at = 3
for _, key in ipairs(KEYS) do
  local last = at + ARGV[at]
  redis.call('ZADD', key, unpack(ARGV, at + 1, last))
  redis.call('ZREMRANGEBYRANK', key, 0, -ARGV[1] - 1)
  redis.call('PEXPIRE', key, ARGV[2])
  at = last + 1
end`);

/** Workers that polled this gateway since the last write. */
export class SeenWorkers {
  #seen = new Map<string, Map<string, number>>();
  #size = 0;

  add(agent: string, worker_id: string): void {
    const workers = this.#seen.get(agent) ?? new Map<string, number>();
    if (!workers.has(worker_id)) {
      if (this.#size === MAX_BUFFERED) return;
      this.#size += 1;
    }
    this.#seen.set(agent, workers.set(worker_id, Date.now()));
  }

  async write(redis: Redis, shards: Shards): Promise<void> {
    if (this.#size === 0) return;
    const written = this.#seen;
    this.#seen = new Map();
    this.#size = 0;
    for (const [keys, ofShard] of shards.groupByShard(written, ([agent]) => agent)) {
      for (let from = 0; from < ofShard.length; from += AGENTS_AT_ONCE) {
        const some = ofShard.slice(from, from + AGENTS_AT_ONCE);
        const args = some.flatMap(([, workers]) => {
          const newest = [...workers].slice(-MOST).flatMap(([worker_id, at]) => [at, worker_id]);
          return [newest.length, ...newest];
        });
        await seenScript.run(
          redis,
          some.map(([agent]) => keys.workers(agent)),
          [MOST, WORKERS_KEPT_MS, ...args],
        );
      }
    }
  }
}
