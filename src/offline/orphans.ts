/**
 * Contents in the store that neither a file nor an upload has: those of files that are newer than a restored backup.
 * Limit: it trusts that no other broker uses the
 * same place.
 */

import { withTransferLock } from "../backup/transfer-lock.ts";
import { localError } from "../client/errors.ts";
import type { FileStore, StoredContent } from "../engine/files/store.ts";
import { connect, type Redis, type RedisTarget } from "../redis/connect.ts";
import { keys } from "../redis/keys.ts";
import { readLayout } from "../redis/layout.ts";
import { LIMITS } from "../schema/limits.ts";
import { sizesByName } from "./stored-files.ts";

/** An upload that is not continued ends after a day, and its content a little later. */
export const ORPHAN_AGE_MS = 2 * LIMITS.file_hours.value * 3_600_000;

export interface OrphanOptions {
  readonly signal: AbortSignal;
  /** How many at most. */
  readonly most: number;
  readonly isDeleting: boolean;
  readonly now?: number;
}

export interface Orphans {
  readonly found: readonly StoredContent[];
  /** There may be more. */
  readonly isMore: boolean;
}

export async function orphansIn(
  target: RedisTarget,
  store: FileStore,
  { signal, most, isDeleting, now = Date.now() }: OrphanOptions,
): Promise<Orphans> {
  const redis = connect(target, "commands");
  redis.on("error", () => undefined);
  try {
    // No restore begins meanwhile: half of one names half of the files.
    return await withTransferLock(redis, signal, async ({ requireHeld }) => {
      await requireWhole(redis);
      const { found, isMore } = await candidates(redis, store, most, now - ORPHAN_AGE_MS);
      // An upload that was complete before it was looked for is a file by now.
      const named = await sizesByName(redis);
      const orphans = found.filter(({ name }) => !named.has(name));
      for (const { name } of isDeleting ? orphans : []) {
        await requireHeld();
        await store.remove(name);
      }
      return { found: orphans, isMore };
    });
  } finally {
    redis.disconnect();
  }
}

/** In the wrong Redis, or in half a restore, every content would look like an orphan. */
async function requireWhole(redis: Redis): Promise<void> {
  const { state } = await readLayout(redis);
  if (state === "complete") return;
  throw localError({
    code: "no_data",
    category: "CONFIG",
    detail: "this Redis does not have all data of a broker",
    recovery:
      "Pass the broker's --data-dir or --redis-url. If a restore or a migration has not finished, finish it. Nothing was deleted.",
  });
}

async function candidates(redis: Redis, store: FileStore, most: number, before: number): Promise<Orphans> {
  const named = await sizesByName(redis);
  const found: StoredContent[] = [];
  for await (const content of store.contents()) {
    const { name, changedAt } = content;
    if (changedAt >= before || named.has(name) || (await isInUse(redis, name))) continue;
    if (found.length === most) return { found, isMore: true };
    found.push(content);
  }
  return { found, isMore: false };
}

/** An upload writes it, or the upkeep of the broker deletes it anyway. */
async function isInUse(redis: Redis, name: string): Promise<boolean> {
  const [upload, due] = await Promise.all([
    redis.exists(`${keys.files}:upload:${name}`),
    redis.zscore(`${keys.files}:due`, `d ${name}`),
  ]);
  return upload === 1 || due !== null;
}
