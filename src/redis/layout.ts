/**
 * The layout of the data: the number of shards, what still depends on earlier numbers, and which versions can read it. A
 * gateway of an older version would treat this version's records as deleted and drop their tickets, so the two must not
 * share data. Limit: an older gateway that starts at the moment of the upgrade is not noticed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import type { Redis } from "./connect.ts";
import { isRecordKey, keys, transferKey } from "./keys.ts";
import { ownKeys } from "./own-keys.ts";
import { Script, writeEvenIfFull } from "./script.ts";
import { randomId, type ShardHistory } from "./shards.ts";

/** The data is laid out for another number of shards, or gateways of an older version use it. */
export class LayoutError extends Error {
  override readonly name = "LayoutError";
}

/** Stored after the number of shards. Older versions compare the whole text with their number and refuse to start. */
const NOT_FOR_OLDER = ", written by a newer version";

/** Stored before a number of shards that grew. Older versions would look in the wrong shard; so they find no number. */
const GROWN = "grown to ";

/** Stored in place of the number of shards while data is restored or moved, so that no gateway starts. */
const RESTORING = "0, a restore has not finished";

const newBrokerId = (): string => `brk_${randomId(26)}`;

/** A gateway without a sign of life for this long is dead. */
const DEAD_MS = 15_000;

const historySchema = z.array(z.object({ count: z.int(), until: z.number() }));
const growthSchema = z.object({ from: z.int(), to: z.int(), at: z.number() });
/** A change to more shards that has begun; `at`: when, ms. */
export type Growth = z.output<typeof growthSchema>;

export interface CheckedLayout {
  /** The id of the broker whose data this is. */
  readonly brokerId: string;
  /** What still depends on earlier numbers of shards; it changes only while no gateway runs. */
  readonly history: ShardHistory;
  /**
   * Throws {@link LayoutError} if the layout has changed since. Call it when this gateway's sign of life is written: a
   * restore or migration marks the layout before it looks for gateways, so at least one of the two notices the other.
   */
  readonly requireUnchanged: () => Promise<void>;
}

/** Throws {@link LayoutError} unless a gateway with this number of shards may start; takes over older data. */
export async function checkLayout(redis: Redis, shards: number, deadMs = DEAD_MS): Promise<CheckedLayout> {
  await requireShards(redis, shards, deadMs);
  const brokerId = await requireBrokerId(redis);
  const checked = await readStored(redis);
  return {
    brokerId,
    history: layoutOf(checked).history,
    requireUnchanged: async () => {
      if (isDeepStrictEqual(await readStored(redis), checked)) return;
      throw new LayoutError(
        "The data was restored or migrated while this gateway started. Wait until that ends, then start the gateway again.",
      );
    },
  };
}

/**
 * Created once. A part of the layout, so that it goes where the data goes: with a backup, a migration, more shards. All
 * gateways on the same data have the same id; an empty Redis is another broker.
 */
async function requireBrokerId(redis: Redis): Promise<string> {
  const stored = await redis.hget(keys.layout, "broker");
  if (stored !== null) return stored;
  await writeEvenIfFull(redis, "HSETNX", keys.layout, "broker", newBrokerId());
  return (await redis.hget(keys.layout, "broker")) ?? "";
}

async function requireShards(redis: Redis, shards: number, deadMs: number): Promise<void> {
  const current = `${shards}${NOT_FOR_OLDER}`;
  let stored = await redis.hget(keys.layout, "shards");
  if (stored === null) {
    // Written only once, and even at full memory, so that a gateway can start then.
    await writeEvenIfFull(redis, "HSETNX", keys.layout, "shards", current);
    stored = await redis.hget(keys.layout, "shards");
  }
  if (stored === RESTORING) {
    throw new LayoutError(
      "A restore or a migration has not finished. Wait until it ends; if it failed, run 'errand restore' or 'errand migrate' again.",
    );
  }
  const count = countOf(stored ?? "");
  if (count !== shards) {
    const more = shards > count ? `; for more shards, run 'errand migrate --shards ${shards}' first` : "";
    throw new LayoutError(
      `The data is laid out for ERRAND_SHARDS=${count}, not ${shards}. Start with ${count}${more}, or with an empty Redis.`,
    );
  }
  if (stored === current || stored?.startsWith(GROWN)) return;
  await requireNoneAlive(redis, current, deadMs);
  await requireReadable(redis);
  await writeEvenIfFull(redis, "HSET", keys.layout, "shards", current);
}

/** An agent or a context may be named `artifacts`, so the end of a key does not say enough. */
const ARTIFACTS = /^\{errand:[0-9a-z]+\}:d:[^:]+:artifacts$/;

/** Throws {@link LayoutError} for data of early development versions: their previews are plain text, or artifacts are lists. */
export async function requireReadable(redis: Redis): Promise<void> {
  for await (const { server, names } of ownKeys(redis)) {
    const pipeline = server.pipeline();
    for (const name of names) {
      if (isRecordKey(name)) pipeline.hget(name, "task_preview");
      else if (ARTIFACTS.test(name)) pipeline.type(name);
    }
    for (const [error, answer] of (await pipeline.exec()) ?? []) {
      if (error) throw error;
      if (answer === null || answer === "hash" || String(answer).startsWith('"')) continue;
      throw new LayoutError(
        "This data is of a development version whose records this version cannot read. Finish its work with that version, then start with an empty data directory or Redis.",
      );
    }
  }
}

const countOf = (stored: string): number =>
  Number.parseInt(stored.startsWith(GROWN) ? stored.slice(GROWN.length) : stored, 10);

export interface StoredLayout {
  /** `restoring`: a restore or a migration has not finished. */
  readonly state: "none" | "complete" | "restoring";
  /** NaN unless complete. */
  readonly shards: number;
  readonly history: ShardHistory;
  readonly growth: Growth | null;
  /** Null for data of an older version that this one has not served yet. */
  readonly brokerId: string | null;
}

/** The fields of the layout, and the agents that are placed. */
type Stored = readonly [Record<string, string>, Record<string, string>];

const readStored = (redis: Redis): Promise<Stored> =>
  Promise.all([redis.hgetall(keys.layout), redis.hgetall(keys.placed)]);

export const readLayout = async (redis: Redis): Promise<StoredLayout> => layoutOf(await readStored(redis));

function layoutOf([{ shards: stored, earlier = "[]", growth, broker }, placed]: Stored): StoredLayout {
  const state = stored === undefined ? "none" : stored === RESTORING ? "restoring" : "complete";
  return {
    state,
    shards: state === "complete" ? countOf(stored ?? "") : Number.NaN,
    history: {
      placed: new Map(Object.entries(placed).map(([agent, shard]) => [agent, Number(shard)])),
      earlier: historySchema.parse(JSON.parse(earlier)),
    },
    brokerId: broker ?? null,
    growth: !growth ? null : growthSchema.parse(JSON.parse(growth)),
  };
}

/**
 * No gateway starts until {@link finishGrowth} by the same owner. An interrupted growth begins here again. Returns as
 * {@link markRestoring} does.
 */
export const beginGrowth = (redis: Redis, growth: Growth, owner: string): Promise<string | null> =>
  mark(redis, owner, ["shards", RESTORING, "growth", JSON.stringify(growth)], true);

/** Lets gateways with `to` shards start. Returns false, and changes nothing, unless `owner` has marked the layout last. */
export async function finishGrowth(
  redis: Redis,
  { from, to, at }: Growth,
  { history: { earlier }, brokerId }: Pick<StoredLayout, "history" | "brokerId">,
  owner: string,
): Promise<boolean> {
  const all = from === to ? earlier : [...earlier, { count: from, until: at }];
  const stored = all.length === 0 ? `${to}${NOT_FOR_OLDER}` : `${GROWN}${to}`;
  return (
    (await finishScript.run(redis, [keys.layout], [owner, stored, JSON.stringify(all), brokerId ?? ""])) === 1
  );
}

/** KEYS: the layout · ARGV: the owner of its mark; the fields `shards`, `earlier` and `broker` */
const finishScript = new Script(`#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'shards', ARGV[2], 'earlier', ARGV[3])
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'broker', ARGV[4]) end
redis.call('HDEL', KEYS[1], 'growth', 'owner', 'before')
return 1`);

/**
 * Keeps gateways from starting until {@link putLayout} by the same owner. Also removes the mark of an unfinished
 * growth: otherwise `errand migrate` could finish that growth on an incomplete copy, and gateways would start on it.
 * Returns the layout that the mark replaces, as {@link layoutText} does; null, and changes nothing, unless `owner` has the
 * lock of backup/transfer-lock.ts: another command may have finished a copy since.
 */
export const markRestoring = (redis: Redis, owner: string): Promise<string | null> =>
  mark(redis, owner, ["shards", RESTORING], false);

async function mark(redis: Redis, owner: string, fields: readonly string[], keeps: boolean) {
  const args = [owner, keeps ? "keeps" : "", ...fields];
  const old = replacedSchema.parse(await markScript.run(redis, [keys.layout, transferKey], args));
  return old === null ? null : textOf(old.flatMap((name, at) => (at % 2 ? [] : [[name, old[at + 1] ?? ""]])));
}

const replacedSchema = z.array(z.string()).nullable();

/**
 * KEYS: the layout; the lock · ARGV: the owner of both; not empty: the other fields stay; the fields of the mark
 * The mark has the layout that it replaces, in the form of DUMP, as its field `before`.
 */
const markScript = new Script(`#!lua flags=allow-oom
if redis.call('HGET', KEYS[2], 'owner') ~= ARGV[1] then return false end
redis.call('HDEL', KEYS[1], 'before')
local old, dump = redis.call('HGETALL', KEYS[1]), redis.call('DUMP', KEYS[1])
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], unpack(ARGV, 3))
if dump then redis.call('HSET', KEYS[1], 'before', dump) end
return old`);

/**
 * Replaces the mark by the layout from before it. Returns false, and changes nothing, unless `owner` has marked the layout
 * last.
 */
export async function putBackLayout(redis: Redis, owner: string): Promise<boolean> {
  return (await putBackScript.run(redis, [keys.layout], [owner])) === 1;
}

/** KEYS: the layout · ARGV: the owner of its mark */
const putBackScript = new Script(`#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
local before = redis.call('HGET', KEYS[1], 'before')
if before then redis.call('RESTORE', KEYS[1], 0, before, 'REPLACE')
else redis.call('DEL', KEYS[1]) end
return 1`);

/** The layout in the form of DUMP, for {@link putLayout}; null if there is none. */
export const dumpLayout = (redis: Redis): Promise<Buffer | null> => redis.dumpBuffer(keys.layout);

/**
 * Replaces the mark by a layout, or deletes it, so that gateways may start. Returns false, and changes nothing, unless
 * `owner` has marked the layout last.
 */
export async function putLayout(redis: Redis, owner: string, dump: Buffer | null): Promise<boolean> {
  return (await putScript.run(redis, [keys.layout], [owner, dump ?? ""])) === 1;
}

/** KEYS: the layout · ARGV: the owner of its mark; the new layout in the form of DUMP, or an empty text */
const putScript = new Script(`#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1])
else redis.call('RESTORE', KEYS[1], 0, ARGV[2], 'REPLACE') end
return 1`);

/** Whether a layout in the form of DUMP has the mark of an unfinished restore or migration. Stores nothing. */
export async function isMarked(redis: Redis, dump: Buffer): Promise<boolean> {
  return (await tryScript.run(redis, [keys.writable("layout")], [dump])) === RESTORING;
}

/** KEYS: any name · ARGV: a layout in the form of DUMP */
const tryScript = new Script(`#!lua flags=allow-oom
redis.call('RESTORE', KEYS[1], 0, ARGV[1], 'REPLACE')
local shards = redis.pcall('HGET', KEYS[1], 'shards')
redis.call('DEL', KEYS[1])
return type(shards) == 'string' and shards or ''`);

/** Differs whenever a restore, a migration or an upgrade has begun. */
export const layoutText = (redis: Redis): Promise<string> =>
  redis.hgetall(keys.layout).then((fields) => textOf(Object.entries(fields)));

/** Without what a mark keeps of the layout before it: the next mark drops that. */
const textOf = (fields: readonly (readonly string[])[]): string =>
  JSON.stringify(fields.filter(([name]) => name !== "before").sort());

/** Whether a restore or a copy has not finished. False for an unfinished growth, whose data is complete. */
export async function isIncompleteCopy(redis: Redis): Promise<boolean> {
  const { state, growth } = await readLayout(redis);
  return state === "restoring" && growth === null;
}

/**
 * How many gateways are alive. One that was killed counts for {@link DEAD_MS}. No clock is trusted alone: a gateway
 * whose sign of life is not recent by Redis' clock is watched for {@link DEAD_MS}, in case its own clock is wrong.
 */
export async function countAlive(redis: Redis, deadMs = DEAD_MS): Promise<number> {
  const now = Number((await redis.time())[0]) * 1_000;
  const recent = await redis.zcount(keys.gateways, now - deadMs, now + deadMs);
  if (recent > 0) return recent;
  const before = await signsOfLife(redis);
  const start = performance.now();
  while (before.size > 0 && performance.now() - start <= deadMs) {
    await sleep(Math.min(200, deadMs));
    const changed = [...(await signsOfLife(redis))].filter(([name, at]) => before.get(name) !== at);
    if (changed.length > 0) return changed.length;
  }
  return 0;
}

async function signsOfLife(redis: Redis): Promise<Map<string, string>> {
  const found = await redis.zrange(keys.gateways, "0", "-1", "WITHSCORES");
  return new Map(found.flatMap((name, n) => (n % 2 === 0 ? [[name, found[n + 1] ?? ""]] : [])));
}

/** Throws {@link LayoutError} if a gateway is alive; waits until one that was killed counts as dead. `current`: the layout of this version. */
async function requireNoneAlive(redis: Redis, current: string, deadMs: number): Promise<void> {
  const start = Date.now();
  while (Date.now() - start <= deadMs) {
    const alive = await redis.zcount(keys.gateways, start + 1, "+inf");
    // Another gateway of this version may have taken over the data meanwhile.
    if ((await redis.hget(keys.layout, "shards")) === current) return;
    if (alive > 0) {
      throw new LayoutError(
        "A gateway of an older version uses this data and would drop newer delegations. Stop all gateways, then start this one.",
      );
    }
    if ((await redis.zcount(keys.gateways, start - deadMs, "+inf")) === 0) return;
    await sleep(Math.min(200, deadMs));
  }
}
