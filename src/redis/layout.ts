/**
 * The layout of the data: its version, the number of shards, and what still depends on earlier numbers. A gateway that cannot
 * read a record would treat it as deleted and drop its tickets, so it refuses data of another version.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import type { Redis } from "./connect.ts";
import { keys, transferKey } from "./keys.ts";
import { Script } from "./script.ts";
import { randomId, type ShardHistory } from "./shards.ts";

/** The data has another layout, or is laid out for another number of shards. */
export class LayoutError extends Error {
  override readonly name = "LayoutError";
}

/** Raise it when builds before and after a change cannot share the data. */
const VERSION = "1";

/** Stored in place of the number of shards while data is restored or moved, so that no gateway starts. */
const RESTORING = "restoring";

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

/** Throws {@link LayoutError} unless a gateway with this number of shards may start. The first one writes the layout. */
export async function checkLayout(redis: Redis, shards: number): Promise<CheckedLayout> {
  if ((await redis.exists(keys.layout)) === 0) {
    await createScript.run(redis, [keys.layout], [VERSION, shards, newBrokerId()]);
  }
  const checked = await readStored(redis);
  const layout = layoutOf(checked);
  requireUsable(layout, shards);
  return {
    brokerId: layout.brokerId,
    history: layout.history,
    requireUnchanged: async () => {
      if (isDeepStrictEqual(await readStored(redis), checked)) return;
      throw new LayoutError(
        "The data was restored or migrated while this gateway started. Wait until that ends, then start the gateway again.",
      );
    },
  };
}

/**
 * KEYS: the layout · ARGV: the fields `version`, `shards` and `broker`
 * Writes even at full memory, so that a gateway can start then. The id of the broker is a part of the layout, so that it goes
 * where the data goes: with a backup, a migration, more shards. All gateways on the same data have the same id; an empty
 * Redis is another broker.
 */
const createScript = new Script(`#!lua flags=allow-oom
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'shards', ARGV[2], 'broker', ARGV[3])
return 1`);

function requireUsable(layout: StoredLayout, shards: number): void {
  if (layout.state === "restoring") {
    throw new LayoutError(
      "A restore or a migration has not finished. Wait until it ends; if it failed, run 'errand restore' or 'errand migrate' again.",
    );
  }
  const why = whyUnreadable(layout);
  if (why !== null) throw new LayoutError(why);
  const count = layout.shards;
  if (count === shards) return;
  const more = shards > count ? `; for more shards, run 'errand migrate --shards ${shards}' first` : "";
  throw new LayoutError(
    `The data is laid out for ERRAND_SHARDS=${count}, not ${shards}. Start with ${count}${more}, or with an empty Redis.`,
  );
}

/** Why this build cannot read the data; null if it can. */
export function whyUnreadable({ version }: Pick<StoredLayout, "version">): string | null {
  if (version === VERSION) return null;
  const found = version === null ? "no layout version" : `layout version ${version}`;
  return `The data has ${found}, and this version of Errand reads layout version ${VERSION}. Use the version that wrote the data, or start with an empty data directory or Redis.`;
}

export interface StoredLayout {
  /** `restoring`: a restore or a migration has not finished. */
  readonly state: "none" | "complete" | "restoring";
  /** The version of the layout; null where it has none, as during a copy. */
  readonly version: string | null;
  /** NaN unless complete. */
  readonly shards: number;
  readonly history: ShardHistory;
  readonly growth: Growth | null;
  /** Empty where there is no layout, and during a copy. */
  readonly brokerId: string;
}

/** The fields of the layout, and the agents that are placed. */
type Stored = readonly [Record<string, string>, Record<string, string>];

const readStored = (redis: Redis): Promise<Stored> =>
  Promise.all([redis.hgetall(keys.layout), redis.hgetall(keys.placed)]);

export const readLayout = async (redis: Redis): Promise<StoredLayout> => layoutOf(await readStored(redis));

function layoutOf([
  { version, shards: stored, earlier = "[]", growth, broker },
  placed,
]: Stored): StoredLayout {
  const state = stored === undefined ? "none" : stored === RESTORING ? "restoring" : "complete";
  return {
    state,
    version: version ?? null,
    shards: state === "complete" ? Number(stored) : Number.NaN,
    history: {
      placed: new Map(Object.entries(placed).map(([agent, shard]) => [agent, Number(shard)])),
      earlier: historySchema.parse(JSON.parse(earlier)),
    },
    brokerId: broker ?? "",
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
  const fields = [VERSION, to, JSON.stringify(all), brokerId];
  return (await finishScript.run(redis, [keys.layout], [owner, ...fields])) === 1;
}

/** KEYS: the layout · ARGV: the owner of its mark; the fields `version`, `shards`, `earlier` and `broker` */
const finishScript = new Script(`#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'shards', ARGV[3], 'earlier', ARGV[4], 'broker', ARGV[5])
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

/** Differs whenever a restore or a migration has begun. */
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
