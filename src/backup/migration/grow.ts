/**
 * Raises the number of shards, while no gateway runs. Ids name their shard, so no delegation moves. An agent without
 * unfinished work moves to the shard that its name now leads to, and its next work is there. The others stay where their
 * work is, which is stored (`keys.placed`); another run moves them when they are done. Every step can be repeated.
 */

import { isRecordLua } from "../../lifecycle/read-fields.ts";
import { OUTBOUND_QUEUE } from "../../queue/outbound-queue.ts";
import type { Redis } from "../../redis/connect.ts";
import { keys, type ShardKeys } from "../../redis/keys.ts";
import { finishGrowth, type Growth, type StoredLayout } from "../../redis/layout.ts";
import { ownKeys } from "../../redis/own-keys.ts";
import { Script, writeEvenIfFull } from "../../redis/script.ts";
import { Shards, shardOfName } from "../../redis/shards.ts";
import { restoreAll } from "../restore.ts";
import { dumpOf } from "./copy.ts";

const LIVE = ["submitted", "working", "interrupted"] as const;

export interface Plan {
  /** Agents that move to another shard. */
  readonly moved: readonly string[];
  /** Agents that would, but have unfinished work. */
  readonly stay: readonly string[];
}

interface Home {
  readonly agent: string;
  readonly shard: number;
  readonly from: ShardKeys;
  readonly to: ShardKeys;
  readonly isBusy: boolean;
}

/** The agents that are in another shard than their names lead to. */
async function homes(redis: Redis, from: number, to: number): Promise<Home[]> {
  const found: Home[] = [];
  const after = new Shards(to);
  for (const [shard, own] of after.all.slice(0, from).entries()) {
    for (const agent of await redis.smembers(own.agents)) {
      const wanted = shardOfName(agent, to);
      if (wanted === shard) continue;
      const live = await Promise.all(LIVE.map((state) => redis.zcard(own.live(agent, state))));
      found.push({ agent, shard, from: own, to: after.at(wanted), isBusy: live.some((count) => count > 0) });
    }
  }
  return found;
}

/** What {@link grow} would do. */
export async function planGrowth(redis: Redis, { from, to }: Pick<Growth, "from" | "to">): Promise<Plan> {
  const all = await homes(redis, from, to);
  const namesOf = (isBusy: boolean) => all.filter((home) => home.isBusy === isBusy).map(({ agent }) => agent);
  return { moved: namesOf(false).sort(), stay: namesOf(true).sort() };
}

export async function grow(
  redis: Redis,
  growth: Growth,
  { placed, earlier }: StoredLayout["history"],
): Promise<Plan> {
  const { from, to, at } = growth;
  // A run that was interrupted has moved some agents already, so they are not in its plan.
  const all = await homes(redis, from, to);
  for (const { agent, shard, isBusy } of all) {
    if (isBusy) await writeEvenIfFull(redis, "HSET", keys.placed, agent, shard);
  }
  await keepOutbound(redis, new Shards(from, { placed, earlier }), to);
  for (const { events } of new Shards(to).all.slice(from)) await beginScript.run(redis, [events], [at]);
  const idle = all.filter(({ isBusy }) => !isBusy);
  const queues = await queuesOf(redis, idle);
  for (const home of idle) await move(redis, home, queues.get(home.agent) ?? []);
  await forgetPlaces(redis, all, placed);
  await dropReservations(redis, new Shards(to));
  await finishGrowth(redis, growth, earlier);
  return {
    moved: idle.map(({ agent }) => agent).sort(),
    stay: all.flatMap(({ agent, isBusy }) => (isBusy ? [agent] : [])).sort(),
  };
}

/** Outgoing calls stay in the queue in which they are. */
async function keepOutbound(redis: Redis, before: Shards, to: number): Promise<void> {
  const shard = before.indexOfAgent(OUTBOUND_QUEUE);
  if (shard === shardOfName(OUTBOUND_QUEUE, to)) await redis.hdel(keys.placed, OUTBOUND_QUEUE);
  else await writeEvenIfFull(redis, "HSET", keys.placed, OUTBOUND_QUEUE, shard);
}

/**
 * KEYS: a new shard's stream · ARGV: when it begins, ms · It begins as a stream that had nothing up to now. So a reader
 * with an older cursor continues here (events/cursor.ts), and gets a RESET if it missed events.
 */
const beginScript = new Script(`#!lua flags=allow-oom
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local id = ARGV[1] .. '-0'
redis.call('XADD', KEYS[1], id, 'e', '')
redis.call('XDEL', KEYS[1], id)
redis.call('XSETID', KEYS[1], id, 'ENTRIESADDED', 0, 'MAXDELETEDID', '0-0')
return 1`);

/** The keys of these agents' queues, by the agent. */
async function queuesOf(redis: Redis, all: readonly Home[]): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>(all.map(({ agent }) => [agent, []]));
  for (const { queuePrefix } of new Set(all.map(({ from }) => from))) {
    for await (const { names } of ownKeys(redis, `${queuePrefix}:*`)) {
      for (const name of names) {
        const [agent = ""] = name.slice(queuePrefix.length + 1).split(":", 1);
        found.get(agent)?.push(name);
      }
    }
  }
  return found;
}

/** Copies all, then deletes; its name in the old shard goes last, because a repeated run finds the agent by it. */
async function move(redis: Redis, { agent, from, to }: Home, queue: readonly string[]): Promise<void> {
  const names = [from.agent(agent), from.workers(agent), ...queue];
  for (const name of names) await copyKey(redis, name, to.base + name.slice(from.base.length));
  const [isPush, unreached, seen] = await Promise.all([
    redis.sismember(from.pushAgents, agent),
    redis.hget(from.unreached, agent),
    redis.hget(from.seen, agent),
  ]);
  if (isPush === 1) await redis.sadd(to.pushAgents, agent);
  if (unreached !== null) await redis.hset(to.unreached, agent, unreached);
  if (seen !== null) await redis.hset(to.seen, agent, seen);
  await redis.zadd(to.agentNames, 0, agent);
  await redis.sadd(to.agents, agent);
  for (const name of names) await redis.unlink(name);
  await redis.srem(from.pushAgents, agent);
  await redis.hdel(from.unreached, agent);
  await redis.hdel(from.seen, agent);
  await redis.zrem(from.agentNames, agent);
  await redis.hdel(keys.placed, agent);
  await redis.srem(from.agents, agent);
}

async function copyKey(redis: Redis, name: string, to: string): Promise<void> {
  const found = await dumpOf(redis, name);
  await restoreAll(
    redis,
    found.map((entry) => ({ ...entry, key: to })),
  );
}

/** Agents that were deleted, or are by now where their names lead to. */
async function forgetPlaces(
  redis: Redis,
  all: readonly Home[],
  placed: ReadonlyMap<string, number>,
): Promise<void> {
  const needed = new Set([OUTBOUND_QUEUE, ...all.map(({ agent }) => agent)]);
  for (const agent of placed.keys()) if (!needed.has(agent)) await redis.hdel(keys.placed, agent);
}

/** KEYS: a record */
const isRecordScript = new Script(`#!lua flags=no-writes
return ${isRecordLua("KEYS[1]")} and 1 or 0`);

/**
 * An idempotency key may lead to an id that has no delegation yet, in the shard where the agent was. No request is on its
 * way, so the key is free: the next one with it gets a new id.
 */
async function dropReservations(redis: Redis, shards: Shards): Promise<void> {
  for await (const { server, names } of ownKeys(redis, keys.idempotency("*"))) {
    const texts = await Promise.all(names.map((name) => server.get(name)));
    await Promise.all(
      texts.map(async (text, at) => {
        const [, id = "", mark] = (text ?? "").split(" ");
        const record = shards.ofId(id)?.delegation(id);
        if (record === undefined || mark === "gone") return;
        if ((await isRecordScript.run(redis, [record], [])) === 0) await server.unlink(names[at] ?? "");
      }),
    );
  }
}
