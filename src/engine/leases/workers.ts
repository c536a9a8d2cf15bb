/**
 * The workers of an agent: which polled lately, and which work each holds. Polls are noted in the background, leases are
 * read from their records. Limit: bounded in number and time; for display only.
 */
import type { Redis } from "../../redis/connect.ts";
import { Script } from "../../redis/script.ts";
import type { Shards } from "../../redis/shards.ts";
import type { Worker } from "../../schema/agent.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { toInstant } from "../../schema/values.ts";
import { type Principal, seesAll } from "../access/access.ts";
import type { Broker } from "../broker.ts";

const MOST = LIMITS.workers.value;
const KEPT_MS = LIMITS.worker_seconds.value * 1000;
/** Workers of all agents noted between two writes; more are left out. */
const MAX_NOTED = 10_000;

/** How many agents' workers one script writes, so that it does not block Redis for long. */
const AGENTS_AT_ONCE = 500;

/** KEYS: workers of agents · ARGV: most, kept ms; then for each key the number of its values, and the values: times, ids. */
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
  #noted = new Map<string, Map<string, number>>();
  #size = 0;

  note(agent: string, worker_id: string): void {
    const workers = this.#noted.get(agent) ?? new Map<string, number>();
    if (!workers.has(worker_id)) {
      if (this.#size === MAX_NOTED) return;
      this.#size += 1;
    }
    this.#noted.set(agent, workers.set(worker_id, Date.now()));
  }

  async write(redis: Redis, shards: Shards): Promise<void> {
    if (this.#size === 0) return;
    const noted = this.#noted;
    this.#noted = new Map();
    this.#size = 0;
    const ofShards = new Map<string, { key: string; seen: (string | number)[] }[]>();
    for (const [agent, workers] of noted) {
      const keys = shards.ofAgent(agent);
      const ofShard = ofShards.get(keys.base) ?? [];
      ofShards.set(keys.base, ofShard);
      const newest = [...workers].slice(-MOST).flatMap(([worker_id, at]) => [at, worker_id]);
      ofShard.push({ key: keys.workers(agent), seen: newest });
    }
    for (const ofShard of ofShards.values()) {
      for (let from = 0; from < ofShard.length; from += AGENTS_AT_ONCE) {
        const some = ofShard.slice(from, from + AGENTS_AT_ONCE);
        const args = some.flatMap(({ seen }) => [seen.length, ...seen]);
        await seenScript.run(
          redis,
          some.map(({ key }) => key),
          [MOST, KEPT_MS, ...args],
        );
      }
    }
  }
}

/** KEYS: workers, live working set · ARGV: base, most, polled since · polls, then a row of each lease: id, worker, seen. */
const workersScript = new Script(`#!lua flags=no-writes
local polls = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[3], '+inf', 'WITHSCORES')
local leases = {}
for _, id in ipairs(redis.call('ZREVRANGE', KEYS[2], 0, ARGV[2] - 1)) do
  local rec = redis.call('HMGET', ARGV[1] .. ':d:' .. id, 'worker_id', 'lease_expires_at', 'lease_ms')
  if rec[1] then
    leases[#leases + 1] = id
    leases[#leases + 1] = rec[1]
    leases[#leases + 1] = string.format('%.0f', (tonumber(rec[2]) or 0) - (tonumber(rec[3]) or 0))
  end
end
return {polls, leases, redis.call('ZCARD', KEYS[2])}`);

export interface Workers {
  readonly workers: readonly Worker[];
  /** There are more leases or workers than were read. */
  readonly truncated: boolean;
}

/** Newest first. For the agent itself, approvers, viewers and the operator. */
export async function workersOf(broker: Broker, principal: Principal, agent: string): Promise<Workers> {
  if (!seesAll(principal) && !(principal.kind === "agent" && principal.name === agent)) {
    throw new ErrandError(
      "forbidden",
      `Only agent:${agent}, approvers, viewers and the operator may see its workers.`,
    );
  }
  const { created_at } = await broker.agents.get(agent);
  // A gateway may write what it noted of an older agent of the same name after that was deleted.
  const since = Math.max(Date.now() - KEPT_MS, created_at - broker.clock.offset_ms);
  const keys = broker.shards.ofAgent(agent);
  const reply = await workersScript.run(
    broker.bulk,
    [keys.workers(agent), keys.live(agent, "working")],
    [keys.base, MOST, since],
  );
  const [polls, leases, working] = Array.isArray(reply) ? reply : [];
  const found = new Map<string, { seen: number; delegations: string[] }>();
  const at = (id: string, seen: number) => {
    const worker = found.get(id) ?? { seen: 0, delegations: [] };
    worker.seen = Math.max(worker.seen, seen);
    found.set(id, worker);
    return worker;
  };
  for (const [id = "", seen] of groups(polls, 2)) at(id, Number(seen));
  for (const [delegation = "", id = "", seen] of groups(leases, 3))
    at(id, Number(seen)).delegations.push(delegation);
  const workers = [...found]
    .sort(([, a], [, b]) => b.seen - a.seen)
    .slice(0, MOST)
    .map(([id, { seen, delegations }]) => ({ id, last_seen_at: toInstant(seen), delegations }));
  return { workers, truncated: Number(working) > MOST || found.size > MOST };
}

function groups(list: unknown, size: number): string[][] {
  const values = Array.isArray(list) ? list.map(String) : [];
  return Array.from({ length: values.length / size }, (_, n) => values.slice(n * size, (n + 1) * size));
}
