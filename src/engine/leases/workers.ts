/**
 * The workers of an agent: which polled lately, and which work each holds. Polls come from `SeenWorkers`, leases from
 * their records. Limit: bounded in number and time; for display only.
 */
import { FIELDS_OF_LUA } from "../../lifecycle/read-fields.ts";
import { pausedField } from "../../redis/keys.ts";
import { Script } from "../../redis/script.ts";
import type { Worker } from "../../schema/agent.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { toInstant } from "../../schema/values.ts";
import { type Principal, seesAll } from "../access/access.ts";
import { pausesIn, toWorkerPause } from "../agents/paused-workers.ts";
import { WORKERS_KEPT_MS } from "../agents/seen-workers.ts";
import type { Broker, Scans } from "../broker.ts";

const MOST = LIMITS.workers.value;
/**
 * KEYS: workers, live working set, seen, live interrupted set, whose questions may be held · ARGV: base, limit, polled since, field of the pauses · Returns polls; leases,
 * each as delegation, worker and when it was last seen; the number of all leases; and the pauses as JSON.
 */
const workersScript = new Script(`#!lua flags=no-writes
${FIELDS_OF_LUA}
local polls = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[3], '+inf', 'WITHSCORES')
local leases = {}
for _, set in ipairs({ KEYS[2], KEYS[4] }) do
  for _, id in ipairs(redis.call('ZREVRANGE', set, 0, ARGV[2] - 1)) do
    local rec = fields_of(ARGV[1] .. ':d:' .. id, { 'worker_id', 'lease_expires_at', 'lease_ms' })
    if rec[1] and tonumber(rec[2] or '') then
      leases[#leases + 1] = id
      leases[#leases + 1] = rec[1]
      leases[#leases + 1] = string.format('%.0f', tonumber(rec[2]) - (tonumber(rec[3]) or 0))
    end
  end
end
return {polls, leases, redis.call('ZCARD', KEYS[2]), redis.call('HGET', KEYS[3], ARGV[4]) or ''}`);

export interface Workers {
  readonly workers: readonly Worker[];
  /** There are more leases or workers than were read. */
  readonly truncated: boolean;
}

/** Newest first. Throws `forbidden` unless the agent itself, an approver, a viewer or the operator asks. */
export async function workersOf(
  broker: Scans & Pick<Broker, "clock">,
  principal: Principal,
  agent: string,
): Promise<Workers> {
  if (!seesAll(principal) && !(principal.kind === "agent" && principal.name === agent)) {
    throw new ErrandError(
      "forbidden",
      `Only agent:${agent}, approvers, viewers and the operator may see its workers.`,
    );
  }
  const { created_at } = await broker.agents.get(agent);
  // After an agent was deleted, a gateway may still write polls of it; a new agent of that name must not show them.
  const since = Math.max(Date.now() - WORKERS_KEPT_MS, created_at - broker.clock.offset_ms);
  const keys = broker.shards.ofAgent(agent);
  const reply = await workersScript.run(
    broker.bulk,
    [keys.workers(agent), keys.live(agent, "working"), keys.seen, keys.live(agent, "interrupted")],
    [keys.base, MOST, since, pausedField(agent)],
  );
  const [polls, leases, working, paused] = Array.isArray(reply) ? reply : [];
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
  const pauses = new Map(pausesIn(String(paused ?? "")).map((pause) => [pause.id, pause]));
  for (const { id, at: pausedAt } of pauses.values()) at(id, pausedAt);
  const workers = [...found]
    .sort(([, a], [, b]) => b.seen - a.seen)
    .slice(0, MOST)
    .map(([id, { seen, delegations }]) => {
      const pause = pauses.get(id);
      const row = { id, last_seen_at: toInstant(seen), delegations };
      return pause ? { ...row, paused: toWorkerPause(pause) } : row;
    });
  return { workers, truncated: Number(working) > MOST || found.size > MOST };
}

function groups(list: unknown, size: number): string[][] {
  const values = Array.isArray(list) ? list.map(String) : [];
  return Array.from({ length: values.length / size }, (_, n) => values.slice(n * size, (n + 1) * size));
}
