/**
 * Copies all keys of Errand from one Redis to another, however many servers each has, and compares the two. Limit: nothing
 * else may write to either of them meanwhile.
 */

import { createHash } from "node:crypto";
import type { Redis, ServerConnection } from "../../redis/connect.ts";
import { isRecordKey, keys, type ShardKeys } from "../../redis/keys.ts";
import { type OwnKeys, ownKeys } from "../../redis/own-keys.ts";
import { allMastersOf, fieldOf } from "../../redis/servers.ts";
import { Shards } from "../../redis/shards.ts";
import { type Dumped, restoreAll } from "../restore.ts";
import type { TransferLock } from "../transfer-lock.ts";

/** About how many bytes are in memory at a time. */
const BATCH_BYTES = 4_194_304;
const BATCH_KEYS = 500;
/** How many settings are read at a time. */
const BATCH_AGENTS = 500;

/** PEXPIRETIME of a key that does not expire, and of one that does not exist. */
const NEVER = -1;
const GONE = -2;

/**
 * The layout is written at the end, because it lets gateways start. The signs of life stay behind, because those gateways
 * do not run on the copy.
 */
const isCopied = (name: string): boolean => name !== keys.layout && name !== keys.gateways;

export interface Counts {
  /** Without keys that expire. */
  readonly keys: number;
  readonly delegations: number;
}

/** Sends one command for each key, in one round trip. */
async function forEachKey(
  { server, names }: OwnKeys,
  send: (pipeline: ReturnType<ServerConnection["pipeline"]>, name: string) => unknown,
): Promise<unknown[]> {
  const pipeline = server.pipeline();
  for (const name of names) send(pipeline, name);
  return ((await pipeline.exec()) ?? []).map(([error, answer]) => {
    if (error) throw error;
    return answer;
  });
}

/** When each key expires, ms, {@link NEVER} or {@link GONE}. */
const expiriesOf = async (found: OwnKeys): Promise<number[]> =>
  (await forEachKey(found, (pipeline, name) => pipeline.pexpiretime(name))).map(Number);

/** The keys to copy, in portions. SCAN may return a key twice if its server resizes a table meanwhile. */
async function* keysToCopy(redis: Redis): AsyncGenerator<OwnKeys> {
  for await (const { server, names } of ownKeys(redis)) {
    const copied = [...new Set(names)].filter(isCopied);
    if (copied.length > 0) yield { server, names: copied };
  }
}

/** The names among these of keys that do not expire. The others may be gone at any time. */
async function namesWithoutExpiry(found: OwnKeys): Promise<string[]> {
  const expiries = await expiriesOf(found);
  return found.names.filter((_, at) => expiries[at] === NEVER);
}

/** `all`: with the keys that expire, which may be gone at any time. */
export async function countKeys(redis: Redis): Promise<{ readonly counts: Counts; readonly all: number }> {
  let all = 0;
  let keys = 0;
  let delegations = 0;
  for await (const found of keysToCopy(redis)) {
    const names = await namesWithoutExpiry(found);
    all += found.names.length;
    keys += names.length;
    delegations += names.filter(isRecordKey).length;
  }
  return { counts: { keys, delegations }, all };
}

export async function copyKeys(
  source: Redis,
  target: Redis,
  { requireHeld }: TransferLock,
  onProgress: (keys: number) => void,
): Promise<void> {
  let copied = 0;
  for await (const found of keysToCopy(source)) {
    const { server, names } = found;
    const sizes = await forEachKey(found, (pipeline, name) => pipeline.memory("USAGE", name));
    for (const batch of inBatches(names, sizes.map(Number))) {
      const entries = await dumpAll({ server, names: batch });
      await requireHeld();
      await restoreAll(target, entries);
      copied += entries.length;
      onProgress(copied);
    }
  }
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

/** Leaves out keys that have expired. */
async function dumpAll(found: OwnKeys): Promise<Dumped[]> {
  const dumps = await forEachKey(found, (pipeline, name) => pipeline.dumpBuffer(name));
  const expiries = await expiriesOf(found);
  return found.names.flatMap((key, at) => toDumped(key, dumps[at], expiries[at] ?? GONE));
}

/** The key as a list of one; empty if it does not exist. */
export async function dumpOf(redis: Redis, key: string): Promise<Dumped[]> {
  const [dump, expiry] = await Promise.all([redis.dumpBuffer(key), redis.pexpiretime(key)]);
  return toDumped(key, dump, expiry);
}

function toDumped(key: string, dump: unknown, expiry: number): Dumped[] {
  if (!Buffer.isBuffer(dump) || expiry === GONE) return [];
  return [{ key, dump, expiresAtMs: expiry === NEVER ? null : expiry }];
}

/** How many keys without an expiry `redis` has that `other` does not have. */
export async function countAbsent(redis: Redis, other: Redis, signal: AbortSignal): Promise<number> {
  let missing = 0;
  for await (const found of keysToCopy(redis)) {
    signal.throwIfAborted();
    const names = await namesWithoutExpiry(found);
    const there = await Promise.all(names.map((name) => other.pexpiretime(name)));
    missing += there.filter((expiry) => expiry !== NEVER).length;
  }
  return missing;
}

/** The version of the format in which this Redis dumps values. Reads the layout, because a broker's data always has one. */
export async function formatOf(redis: Redis): Promise<number> {
  const dump = await redis.dumpBuffer(keys.layout);
  // The last ten bytes are the version and a checksum.
  if (dump === null) throw new Error("the layout has disappeared");
  return dump.readUInt16LE(dump.length - 10);
}

/**
 * Differs whenever a broker has worked: the newest event, the due records, the delegations, and the agents with their
 * settings, of each shard; the tokens; the newest entries of the audit log.
 */
export async function fingerprint(redis: Redis, shards: number): Promise<string> {
  const hash = createHash("sha256");
  for (const shard of new Shards(shards).all) {
    const { events, due, list } = shard;
    const counts = [lastId(redis, events), redis.zcard(due), redis.zcard(list("all"))];
    hash.update(JSON.stringify(await Promise.all(counts)));
    for await (const settings of agentSettings(redis, shard)) hash.update(JSON.stringify(settings));
  }
  const others = [redis.hlen(keys.tokens), lastId(redis, keys.audit), lastId(redis, keys.auditOthers)];
  return hash.update(JSON.stringify(await Promise.all(others))).digest("hex");
}

/** Names and documents, in portions, in the same order at each server. */
async function* agentSettings(redis: Redis, { agents, agent }: ShardKeys) {
  const names = (await redis.smembers(agents)).sort();
  for (let at = 0; at < names.length; at += BATCH_AGENTS) {
    const some = names.slice(at, at + BATCH_AGENTS);
    yield await Promise.all(some.map(async (name) => [name, await redis.hget(agent(name), "doc")]));
  }
}

async function lastId(redis: Redis, stream: string): Promise<string | null> {
  const [last] = await redis.xrevrange(stream, "+", "-", "COUNT", 1);
  return last?.[0] ?? null;
}

/**
 * Identifies a Redis, whatever its address: the servers that have slots, and the database. Null if one is a replica: it
 * has the data of another server, perhaps of the one with which it is compared.
 */
export async function identityOf(redis: Redis, database: number): Promise<string | null> {
  const infos = await Promise.all((await allMastersOf(redis)).map((server) => server.info("replication")));
  if (infos.some((info) => fieldOf(info, "role") !== "master")) return null;
  const ids = infos.map((info) => fieldOf(info, "master_replid"));
  return `${ids.sort().join(" ")} ${database}`;
}
