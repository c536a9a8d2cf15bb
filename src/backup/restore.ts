/**
 * Writes the keys of a backup into a Redis. Until the last one is written, no gateway starts on it. Limit: it is not
 * atomic; a restore that fails after its first write leaves an incomplete copy, which only another restore can replace.
 */
import { connect, type Redis, type RedisTarget, reasonOf } from "../redis/connect.ts";
import { keys } from "../redis/keys.ts";
import { countAlive, isIncompleteCopy, layoutText, markRestoring, putLayout } from "../redis/layout.ts";
import { ownKeys, unlinkAll } from "../redis/own-keys.ts";
import type { BackupEntry, OpenBackup } from "./backup-file.ts";
import { Crc64 } from "./crc64.ts";
import { signsOfLifeText, whileMarked } from "./mark.ts";
import { TransferError } from "./transfer-error.ts";
import { type TransferLock, takenOver, withTransferLock } from "./transfer-lock.ts";

const BATCH_BYTES = 1_048_576;
const BATCH_KEYS = 1_000;
/** A large value takes a while, and so does the disk. */
const SILENCE_MS = 60_000;

export interface RestoreOptions {
  /** Delete what is there. */
  readonly force: boolean;
  /** This process started Redis for the restore, so no gateway can use it, and the check for gateways is skipped. */
  readonly isExclusive: boolean;
  readonly onProgress: (keys: number) => void;
  readonly signal: AbortSignal;
}

export async function restore(
  target: RedisTarget,
  backup: OpenBackup,
  options: RestoreOptions,
): Promise<void> {
  const redis = connect(target, "commands", undefined, SILENCE_MS);
  const reason = reasonOf(redis, target);
  let hasWritten = false;
  try {
    await withTransferLock(redis, options.signal, async (lock) => {
      const before = await signsOfLifeText(redis);
      const layout = await layoutText(redis);
      await check(redis, backup, options);
      const marking = {
        ...{ redis, lock, layout, watched: [{ redis, before }] },
        mark: () => markRestoring(redis, lock.owner),
        onWrite: () => {
          hasWritten = true;
        },
      };
      await whileMarked(marking, async (marked) => {
        await deleteKeys(redis, marked);
        await write(redis, backup, options, marked);
      });
    });
  } catch (error) {
    if (error instanceof TransferError) throw error;
    options.signal.throwIfAborted();
    throw new TransferError(hasWritten ? "failed" : "unreachable", reason(error));
  } finally {
    redis.disconnect();
  }
}

async function check(redis: Redis, { header }: OpenBackup, options: RestoreOptions) {
  await requireFree(redis, options);
  if (!(await readsFormat(redis, header.rdb_version))) {
    throw new TransferError(
      "too_old",
      `the backup is from ${header.server}, and this server is too old to read it`,
    );
  }
}

/** Throws unless its keys may be replaced: no gateway uses it, and it has no data, or `force` is on. */
export async function requireFree(
  redis: Redis,
  { force, isExclusive }: Pick<RestoreOptions, "force" | "isExclusive">,
): Promise<void> {
  if (!isExclusive && (await countAlive(redis)) > 0) {
    throw new TransferError("in_use", "a broker uses this Redis, or was killed less than 15 seconds ago");
  }
  if (!force && !(await isIncompleteCopy(redis)) && (await hasKeys(redis))) {
    throw new TransferError("not_empty", "there is data of a broker already");
  }
}

/** Refused by every server: no type of value has this number. So it tells whether a version is read, and stores nothing. */
const NO_VALUE = Buffer.from([0xff]);

/** Whether the server reads values in this version of the format of DUMP. */
export async function readsFormat(redis: Redis, version: number): Promise<boolean> {
  const answer = await redis
    .restore(keys.writable("restore"), 0, payload(NO_VALUE, version))
    .catch((error: unknown) => (error instanceof Error ? error.message : ""));
  if (/payload version or checksum/.test(answer)) return false;
  // At full memory, Redis refuses before it reads the value.
  if (/Bad data format|^OOM/.test(answer)) return true;
  throw new Error(answer);
}

async function hasKeys(redis: Redis): Promise<boolean> {
  for await (const _some of ownKeys(redis)) return true;
  return false;
}

/** All but the layout, so that no gateway starts meanwhile. */
export async function deleteKeys(redis: Redis, { requireHeld }: TransferLock): Promise<void> {
  for await (const { server, names } of ownKeys(redis)) {
    const others = names.filter((name) => name !== keys.layout);
    if (others.length === 0) continue;
    await requireHeld();
    await unlinkAll({ server, names: others });
  }
}

async function write(
  redis: Redis,
  { header, layout, entries }: OpenBackup,
  { onProgress }: RestoreOptions,
  { owner, requireHeld, renew }: TransferLock,
): Promise<void> {
  let done = 0;
  let batch: BackupEntry[] = [];
  let bytes = 0;
  const flush = async () => {
    await requireHeld();
    await writeBatch(redis, batch, header.rdb_version);
    done += batch.length;
    onProgress(done);
    batch = [];
    bytes = 0;
  };
  for await (const entry of entries()) {
    if (entry.key.toString("latin1") === keys.layout) continue;
    batch.push(entry);
    bytes += entry.value.length;
    if (bytes >= BATCH_BYTES || batch.length >= BATCH_KEYS) await flush();
  }
  await flush();
  await renew();
  // Last, because it lets gateways start. Without it, no gateway had ever started on this data.
  const dump = layout && payload(layout, header.rdb_version);
  if (!(await putLayout(redis, owner, dump))) throw takenOver();
}

async function writeBatch(redis: Redis, batch: readonly BackupEntry[], rdbVersion: number): Promise<void> {
  await restoreAll(
    redis,
    batch.map(({ value, ...entry }) => ({ ...entry, dump: payload(value, rdbVersion) })),
  );
}

export interface Dumped {
  readonly key: Buffer | string;
  readonly dump: Buffer;
  readonly expiresAtMs: number | null;
}

/** Writes them at once, in one round trip to each server; replaces keys of the same names. */
export async function restoreAll(redis: Redis, entries: readonly Dumped[]): Promise<void> {
  const writes = entries.map(({ key, dump, expiresAtMs }) =>
    redis.restore(key, expiresAtMs ?? 0, dump, "REPLACE", "ABSTTL"),
  );
  await Promise.allSettled(writes);
  await Promise.all(writes);
}

/** The argument of RESTORE: the value, the version of its form, and a checksum, which Redis verifies. */
function payload(value: Buffer, rdbVersion: number): Buffer {
  const version = Buffer.alloc(2);
  version.writeUInt16LE(rdbVersion);
  const crc = new Crc64().update(value).update(version).digest();
  return Buffer.concat([value, version, crc]);
}
