/**
 * Raises the number of shards, while no gateway runs. Ids name their shard, so no delegation moves. A larger number of
 * shards leads the names of agents to other shards. An agent without unfinished work moves to its new shard. An agent
 * with unfinished work stays, and `keys.placed` stores where; a later growth to the same number moves it. Every step can
 * be repeated.
 */

import * as z from "zod";
import { isRecordLua } from "../../lifecycle/read-fields.ts";
import { OUTBOUND_QUEUE } from "../../queue/outbound-queue.ts";
import type { Redis } from "../../redis/connect.ts";
import { keys, pausedField, type ShardKeys } from "../../redis/keys.ts";
import { finishGrowth, type Growth, type StoredLayout } from "../../redis/layout.ts";
import { ownKeys } from "../../redis/own-keys.ts";
import { Script, writeEvenIfFull } from "../../redis/script.ts";
import { Shards, shardOfName } from "../../redis/shards.ts";
import { restoreAll } from "../restore.ts";
import { type TransferLock, takenOver } from "../transfer-lock.ts";
import { dumpOf } from "./copy.ts";

const UNFINISHED = ["submitted", "working", "interrupted", "awaiting_children"] as const;

export interface Plan {
  /** Agents that move to another shard. */
  readonly moved: readonly string[];
  /** Agents that stay, because they have unfinished work. */
  readonly stay: readonly string[];
}

/** An agent that is in another shard than its name leads to. */
interface Misplaced {
  readonly agent: string;
  /** The number of the shard `from`. */
  readonly shard: number;
  readonly from: ShardKeys;
  readonly to: ShardKeys;
  /** Whether it has unfinished work. */
  readonly isBusy: boolean;
}

async function misplacedAgents(redis: Redis, from: number, to: number): Promise<Misplaced[]> {
  const found: Misplaced[] = [];
  const after = new Shards(to);
  for (const [shard, own] of after.all.slice(0, from).entries()) {
    for (const agent of await redis.smembers(own.agents)) {
      const wanted = shardOfName(agent, to);
      if (wanted === shard) continue;
      const counts = await Promise.all(UNFINISHED.map((state) => redis.zcard(own.live(agent, state))));
      const isBusy = counts.some((count) => count > 0);
      found.push({ agent, shard, from: own, to: after.at(wanted), isBusy });
    }
  }
  return found;
}

/** What {@link grow} would do. */
export async function planGrowth(redis: Redis, { from, to }: Pick<Growth, "from" | "to">): Promise<Plan> {
  return planOf(await misplacedAgents(redis, from, to));
}

const planOf = (misplaced: readonly Misplaced[]): Plan => {
  const namesOf = (isBusy: boolean) =>
    misplaced.flatMap((one) => (one.isBusy === isBusy ? [one.agent] : [])).sort();
  return { moved: namesOf(false), stay: namesOf(true) };
};

/** Agents that an interrupted run has moved are not misplaced any more, so they are not in the plan that is returned. */
export async function grow(
  redis: Redis,
  growth: Growth,
  layout: Pick<StoredLayout, "history" | "brokerId">,
  lock: TransferLock,
): Promise<Plan> {
  const { from, to, at } = growth;
  const { placed, earlier } = layout.history;
  const { requireHeld } = lock;
  const misplaced = await misplacedAgents(redis, from, to);
  for (const { agent, shard, isBusy } of misplaced) {
    if (!isBusy) continue;
    await requireHeld();
    await writeEvenIfFull(redis, "HSET", keys.placed, agent, shard);
  }
  await requireHeld();
  await keepOutbound(redis, new Shards(from, { placed, earlier }), to);
  for (const { events } of new Shards(to).all.slice(from)) {
    await requireHeld();
    await beginScript.run(redis, [events], [at]);
  }
  const idle = misplaced.filter(({ isBusy }) => !isBusy);
  const queues = await queueKeysOf(redis, idle);
  for (const one of idle) {
    await requireHeld();
    await move(redis, one, queues.get(one.agent) ?? []);
  }
  await forgetPlaces(redis, misplaced, placed, lock);
  await dropReservations(redis, new Shards(to), lock);
  await lock.renew();
  if (!(await finishGrowth(redis, growth, layout, lock.owner))) throw takenOver();
  return planOf(misplaced);
}

/** The outbound queue stays in its shard, with the calls that wait in it. */
async function keepOutbound(redis: Redis, before: Shards, to: number): Promise<void> {
  const shard = before.indexOfAgent(OUTBOUND_QUEUE);
  if (shard === shardOfName(OUTBOUND_QUEUE, to)) await redis.hdel(keys.placed, OUTBOUND_QUEUE);
  else await writeEvenIfFull(redis, "HSET", keys.placed, OUTBOUND_QUEUE, shard);
}

/**
 * KEYS: a new shard's stream · ARGV: when it begins, ms · Creates an empty stream whose last id is that instant. So a
 * reader with an older cursor continues here (events/cursor.ts), and gets a RESET if events were trimmed since.
 */
const beginScript = new Script(`#!lua flags=allow-oom
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local id = ARGV[1] .. '-0'
redis.call('XADD', KEYS[1], id, 'e', '')
redis.call('XDEL', KEYS[1], id)
redis.call('XSETID', KEYS[1], id, 'ENTRIESADDED', 0, 'MAXDELETEDID', '0-0')
return 1`);

/** The keys of the queue of each agent. */
async function queueKeysOf(redis: Redis, agents: readonly Misplaced[]): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>(agents.map(({ agent }) => [agent, []]));
  for (const { queuePrefix } of new Set(agents.map(({ from }) => from))) {
    for await (const { names } of ownKeys(redis, `${queuePrefix}:*`)) {
      for (const name of names) {
        const [agent = ""] = name.slice(queuePrefix.length + 1).split(":", 1);
        found.get(agent)?.push(name);
      }
    }
  }
  return found;
}

/** Copies everything, then deletes it. The name in the old shard is deleted last, because a repeated run finds it there. */
async function move(redis: Redis, { agent, from, to }: Misplaced, queue: readonly string[]): Promise<void> {
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
  await moveRules(redis, agent, from, to);
  await redis.zadd(to.agentNames, 0, agent);
  await redis.sadd(to.agents, agent);
  for (const name of [...names, from.turns(agent)]) await redis.unlink(name);
  await redis.srem(from.pushAgents, agent);
  await redis.hdel(from.unreached, agent);
  await redis.hdel(from.seen, agent, pausedField(agent));
  await redis.zrem(from.agentNames, agent);
  await redis.hdel(keys.placed, agent);
  await redis.srem(from.agents, agent);
}

const ruleDocSchema = z.object({ by: z.string(), token: z.string() });

/** Copies the rules for an agent, then deletes them; the list by which a repeated run finds them is changed last. */
async function moveRules(redis: Redis, agent: string, from: ShardKeys, to: ShardKeys): Promise<void> {
  const list = `for:${agent}`;
  const found = await redis.zrange(from.ruleList(list), "0", "-1", "WITHSCORES");
  const ids = found.flatMap((id, at) => (at % 2 === 0 ? [{ id, at: Number(found[at + 1]) }] : []));
  const places = new Map<string, string>();
  for (const { id } of ids) places.set(id, (await redis.hget(from.rulePlaces, id)) ?? "");
  const scopeOf = (id: string): string => places.get(id)?.split(" ")[1] ?? "";
  const hashes = [...new Set(ids.map(({ id }) => scopeOf(id)))].map((scope) => ({
    old: from.rules(agent, scope),
    new: to.rules(agent, scope),
  }));
  for (const hash of hashes) await copyKey(redis, hash.old, hash.new);
  for (const { id, at } of ids) {
    const doc = await redis.hget(from.rules(agent, scopeOf(id)), id);
    // An earlier run has moved it, up to the list.
    if (doc === null) continue;
    const { by, token } = ruleDocSchema.parse(JSON.parse(doc));
    await redis.hset(to.rulePlaces, id, places.get(id) ?? "");
    const lists = ["all", `by:${by}`, ...(token === "" ? [] : [`token:${token}`])];
    for (const name of [...lists, list]) await redis.zadd(to.ruleList(name), at, id);
    for (const name of lists) await redis.zrem(from.ruleList(name), id);
  }
  for (const hash of hashes) await redis.unlink(hash.old);
  for (const { id } of ids) {
    await redis.hdel(from.rulePlaces, id);
    await redis.zrem(from.ruleList(list), id);
  }
}

async function copyKey(redis: Redis, name: string, to: string): Promise<void> {
  const found = await dumpOf(redis, name);
  await restoreAll(
    redis,
    found.map((entry) => ({ ...entry, key: to })),
  );
}

/** Of agents that were deleted, or are now in the shard to which their names lead. */
async function forgetPlaces(
  redis: Redis,
  misplaced: readonly Misplaced[],
  placed: ReadonlyMap<string, number>,
  { requireHeld }: TransferLock,
): Promise<void> {
  const needed = new Set([OUTBOUND_QUEUE, ...misplaced.map(({ agent }) => agent)]);
  for (const agent of placed.keys()) {
    if (needed.has(agent)) continue;
    await requireHeld();
    await redis.hdel(keys.placed, agent);
  }
}

/** KEYS: a record */
const isRecordScript = new Script(`#!lua flags=no-writes
return ${isRecordLua("KEYS[1]")} and 1 or 0`);

/**
 * Frees the idempotency keys whose delegation was never created. The id that such a key reserves names the shard in which
 * the agent was. No request is on its way, so the next one with the key may get a new id.
 */
async function dropReservations(redis: Redis, shards: Shards, { requireHeld }: TransferLock): Promise<void> {
  for await (const { server, names } of ownKeys(redis, keys.idempotency("*"))) {
    const texts = await Promise.all(names.map((name) => server.get(name)));
    await requireHeld();
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
