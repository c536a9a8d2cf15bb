/**
 * Copies all keys of Errand from one Redis to another, whatever their number of servers, and compares the two. Limit:
 * nothing may write to either of them meanwhile.
 */

import type { Redis, ServerConnection } from "../../redis/connect.ts";
import { isRecordKey, keys } from "../../redis/keys.ts";
import { type OwnKeys, ownKeys } from "../../redis/own-keys.ts";
import { fieldOf, mastersOf } from "../../redis/servers.ts";
import { Shards } from "../../redis/shards.ts";
import { type Dumped, restoreAll } from "../restore.ts";

/** What is in memory at a time, about. */
const BATCH_BYTES = 4_194_304;
const BATCH_KEYS = 500;

/** The layout is written last, because it lets gateways start; those of this moment do not run on the copy. */
const isCopied = (name: string): boolean => name !== keys.layout && name !== keys.gateways;

export interface Counts {
  /** Without those that expire. */
  readonly keys: number;
  readonly delegations: number;
}

/** One command for each key, in one round trip. */
async function askAll(
  { server, names }: OwnKeys,
  ask: (pipeline: ReturnType<ServerConnection["pipeline"]>, name: string) => unknown,
): Promise<unknown[]> {
  const pipeline = server.pipeline();
  for (const name of names) ask(pipeline, name);
  return ((await pipeline.exec()) ?? []).map(([error, answer]) => {
    if (error) throw error;
    return answer;
  });
}

/** Until when the keys exist, ms; -1: for ever, -2: they are gone. */
const expiriesOf = async (some: OwnKeys): Promise<number[]> =>
  (await askAll(some, (pipeline, name) => pipeline.pexpiretime(name))).map(Number);

/** The keys to copy. SCAN may return a key twice, so their names are kept in memory. */
async function* copiedKeys(redis: Redis): AsyncGenerator<OwnKeys> {
  const seen = new Set<string>();
  for await (const { server, names } of ownKeys(redis)) {
    const fresh = [...new Set(names)].filter((name) => isCopied(name) && !seen.has(name));
    for (const name of fresh) seen.add(name);
    if (fresh.length > 0) yield { server, names: fresh };
  }
}

export async function countKeys(redis: Redis): Promise<Counts> {
  let all = 0;
  let delegations = 0;
  for await (const some of copiedKeys(redis)) {
    for (const [at, expiry] of (await expiriesOf(some)).entries()) {
      if (expiry !== -1) continue;
      all += 1;
      if (isRecordKey(some.names[at] ?? "")) delegations += 1;
    }
  }
  return { keys: all, delegations };
}

/** Returns how many keys were written that do not expire. */
export async function copyKeys(
  source: Redis,
  target: Redis,
  { onProgress, signal }: { readonly onProgress: (keys: number) => void; readonly signal: AbortSignal },
): Promise<number> {
  let copied = 0;
  let kept = 0;
  for await (const found of copiedKeys(source)) {
    const { server, names } = found;
    const sizes = await askAll(found, (pipeline, name) => pipeline.memory("USAGE", name));
    for (const some of inBatches(names, sizes.map(Number))) {
      signal.throwIfAborted();
      const entries = await dumpAll({ server, names: some });
      await restoreAll(target, entries);
      copied += entries.length;
      kept += entries.filter(({ expiresAtMs }) => expiresAtMs === null).length;
      onProgress(copied);
    }
  }
  return kept;
}

function* inBatches(names: readonly string[], sizes: readonly number[]): Generator<string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for (const [at, name] of names.entries()) {
    batch.push(name);
    bytes += sizes[at] ?? 0;
    if (bytes < BATCH_BYTES && batch.length < BATCH_KEYS) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

/** Without keys that are gone. */
async function dumpAll(some: OwnKeys): Promise<Dumped[]> {
  const dumps = await askAll(some, (pipeline, name) => pipeline.dumpBuffer(name));
  const expiries = await expiriesOf(some);
  return some.names.flatMap((key, at) => {
    const [dump, expiry = -2] = [dumps[at], expiries[at]];
    if (!Buffer.isBuffer(dump) || expiry === -2) return [];
    return [{ key, dump, expiresAtMs: expiry === -1 ? null : expiry }];
  });
}

/** The same for one key of any server. */
export async function dumpOf(redis: Redis, key: string): Promise<Dumped[]> {
  const [dump, expiry] = await Promise.all([redis.dumpBuffer(key), redis.pexpiretime(key)]);
  return dump === null || expiry === -2 ? [] : [{ key, dump, expiresAtMs: expiry === -1 ? null : expiry }];
}

/** What changes whenever a broker works: the newest event and the due records of each shard, agents, tokens, gateways. */
export async function fingerprint(redis: Redis, shards: number): Promise<string> {
  const ofShards = new Shards(shards).all.map(async ({ events, due, agents, list }) => [
    await lastId(redis, events),
    await redis.zcard(due),
    await redis.zcard(list("all")),
    await redis.scard(agents),
  ]);
  return JSON.stringify([await Promise.all(ofShards), await redis.hlen(keys.tokens)]);
}

/** The signs of life of gateways. */
export const livesOf = (redis: Redis): Promise<string> =>
  redis.zrange(keys.gateways, "0", "-1", "WITHSCORES").then((signs) => signs.join(" "));

async function lastId(redis: Redis, stream: string): Promise<string | null> {
  const [last] = await redis.xrevrange(stream, "+", "-", "COUNT", 1);
  return last?.[0] ?? null;
}

/** Names a Redis, whatever its address: the servers with slots, and the database. */
export async function identityOf(redis: Redis, database: number): Promise<string> {
  const ids = await Promise.all(
    (await mastersOf(redis)).map(async (server) => fieldOf(await server.info("server"), "run_id")),
  );
  return `${ids.sort().join(" ")} ${database}`;
}
