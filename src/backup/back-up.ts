/** Writes all keys of Errand, as they are at one point in time, into a file. */
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { serverStatus } from "../redis/check.ts";
import { connectServer, type Redis, type RedisTarget } from "../redis/connect.ts";
import { isFileKey, isOwnKey, isRecordKey, keys as keyNames } from "../redis/keys.ts";
import { dumpLayout, readLayout } from "../redis/layout.ts";
import { randomId } from "../redis/shards.ts";
import { type BackupEntry, type BackupHeader, BackupWriter } from "./backup-file.ts";
import { readRdb } from "./rdb.ts";
import { takeSnapshot } from "./snapshot.ts";
import { TransferError } from "./transfer-error.ts";
import { requireNoTransfer } from "./transfer-lock.ts";

const BATCH_BYTES = 1_048_576;

export interface BackUpOptions {
  readonly path: string;
  readonly errandVersion: string;
  readonly onProgress: (keys: number, bytes: number) => void;
  readonly signal: AbortSignal;
}

/** Writes under a temporary name, and renames the file when it is complete and on disk; replaces an older file. */
export async function backUp(target: RedisTarget, options: BackUpOptions): Promise<BackupHeader> {
  const { path } = options;
  const draft = `${path}.${randomId(8)}.part`;
  const file = await open(draft, "wx", 0o600);
  try {
    const header = await writeKeys(target, new BackupWriter(file), options);
    await rename(draft, path);
    await syncFolder(dirname(path));
    return header;
  } finally {
    await file.close();
    await rm(draft, { force: true });
  }
}

async function writeKeys(
  target: RedisTarget,
  writer: BackupWriter,
  { errandVersion, onProgress, signal }: BackUpOptions,
): Promise<BackupHeader> {
  const redis = connectServer(target, "commands");
  redis.on("error", () => undefined);
  try {
    const { product, version } = await serverStatus(redis);
    const before = await requireFinished(redis);
    const own = redis.options.db ?? 0;
    // Everything acknowledged before this instant is in the snapshot.
    const created_at = new Date().toISOString();
    const snapshot = await readRdb(takeSnapshot(redis, signal));
    let keys = 0;
    let delegations = 0;
    let files = 0;
    let layout: Buffer | null = null;
    let batch: BackupEntry[] = [];
    let batchBytes = 0;
    const flush = async () => {
      await writer.add(batch);
      onProgress(keys, writer.bytes);
      batch = [];
      batchBytes = 0;
    };
    for await (const { database, ...entry } of snapshot.entries) {
      const key = entry.key.toString("latin1");
      // The gateways of this moment will not run on the copy.
      if (database !== own || !isOwnKey(key) || key === keyNames.gateways) continue;
      if (key === keyNames.layout) layout = entry.value;
      keys += 1;
      // The mark of an erased delegation expires (redis/keys.ts).
      if (isRecordKey(key) && entry.expiresAtMs === null) delegations += 1;
      if (isFileKey(key)) files += 1;
      batch.push(entry);
      batchBytes += entry.value.length;
      if (batchBytes >= BATCH_BYTES) await flush();
    }
    await flush();
    requireSameLayout(before, layout);
    return await writer.finish({
      errand_version: errandVersion,
      created_at,
      server: `${product} ${version}`,
      rdb_version: snapshot.version,
      database: own,
      keys,
      delegations,
      // An older version reads a backup without files.
      ...(files > 0 && { files }),
    });
  } finally {
    redis.disconnect();
  }
}

/**
 * Throws if a restore, a migration or a growth is unfinished: no broker would start on the copy. Returns the layout as DUMP,
 * for {@link requireSameLayout}.
 */
async function requireFinished(redis: Redis): Promise<Buffer | null> {
  await requireNoTransfer(redis);
  // Dump first: if a restore begins in between, the check fails. In the other order, both checks would pass.
  const dump = await dumpLayout(redis);
  const { state, growth } = await readLayout(redis);
  if (growth) {
    throw new TransferError("growing", `the change of this data to ${growth.to} shards has not finished`);
  }
  if (state === "restoring") {
    throw new TransferError("unfinished", "a restore or a migration into this Redis has not finished");
  }
  return dump;
}

/** DUMP appends 2 bytes of version and 8 of checksum, which the value in a snapshot lacks. */
const DUMP_END_BYTES = 10;

/**
 * A restore or migration may begin between the check and the snapshot. It marks the layout while it writes, so the layout in
 * the snapshot then differs. Whatever begins later is not in the snapshot.
 */
function requireSameLayout(before: Buffer | null, inSnapshot: Buffer | null): void {
  const same =
    before === null || inSnapshot === null
      ? before === inSnapshot
      : before.subarray(0, -DUMP_END_BYTES).equals(inSnapshot);
  if (same) return;
  throw new TransferError("unfinished", "the data was restored or migrated as the backup began");
}

/** Syncs the folder, so that the rename survives a crash. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
