/**
 * `errand backup` and `errand restore`, on the Redis of a broker, which may run for a backup but not for a restore.
 * They use it directly, because a copy through the HTTP API would not show one instant.
 */
import { stat } from "node:fs/promises";
import { backUp } from "../backup/back-up.ts";
import { type BackupHeader, openBackup } from "../backup/backup-file.ts";
import { restore } from "../backup/restore.ts";
import type { BackupSummary, Backups } from "../cli/host.ts";
import { localError } from "../client/errors.ts";
import { clusterOf } from "../redis/target.ts";
import { toInstant } from "../schema/values.ts";
import { orphansIn } from "./orphans.ts";
import { type Env, explained, type Opened, openToRead, openToWrite } from "./redis.ts";
import { countMissing } from "./stored-files.ts";

export function backups(env: Env, errandVersion: string): Backups {
  return {
    backUp: ({ path, force, signal, onProgress, ...place }) =>
      explained(path, async () => {
        const found = await stat(path).catch(() => null);
        if (found !== null && !found.isFile()) throw notAFile(path);
        if (found !== null && !force) throw fileExists(path);
        const opened = await openToRead(env, place);
        const { target, where, files, close } = opened;
        try {
          requireOneServer(opened);
          const header = await backUp(target, { path, errandVersion, onProgress, signal });
          return summary(path, where, header, { place: files?.place ?? null, missing: null });
        } finally {
          await close();
        }
      }),
    restore: ({ path, force, check, signal, onProgress, ...place }) =>
      explained(path, async () => {
        const backup = await openBackup(path, signal);
        try {
          const { header } = backup;
          if (check) return summary(path, null, header, { place: null, missing: null });
          const opened = await openToWrite(env, place);
          try {
            const isExclusive = opened.target.socket !== undefined;
            await restore(opened.target, backup, {
              force,
              isExclusive,
              signal,
              onProgress: (keys) => onProgress(keys, header.keys),
            });
            const { target, where, files } = opened;
            const missing = header.files === undefined ? 0 : await countMissing(target, files);
            return summary(path, where, header, { place: files?.place ?? null, missing });
          } finally {
            await opened.close();
          }
        } finally {
          await backup.close();
        }
      }),
    orphans: ({ most, isDeleting, signal, ...place }) =>
      explained("", async () => {
        const { target, files, close } = await openToRead(env, place);
        try {
          if (files === null) throw storesNothing();
          const { found, isMore } = await orphansIn(target, files, { most, isDeleting, signal });
          return {
            place: files.place,
            found: found.map(({ changedAt, ...one }) => ({ ...one, changed_at: toInstant(changedAt) })),
            more: isMore,
          };
        } finally {
          await close();
        }
      }),
  };
}

function summary(
  file: string,
  redis: string | null,
  header: BackupHeader,
  contents: Omit<BackupSummary["files"], "count">,
): BackupSummary {
  const { errand_backup: format, files: count = 0, ...rest } = header;
  return { file, redis, format, ...rest, files: { count, ...contents } };
}

function requireOneServer({ target, where }: Opened): void {
  if (clusterOf(target) === null) return;
  throw localError({
    code: "redis_cluster",
    category: "CONFIG",
    detail: `Redis at ${where} is a Cluster, whose masters cannot be copied at one instant`,
    recovery: "Use the snapshots of your provider, or 'redis-cli --cluster backup'. Nothing was changed.",
  });
}

const storesNothing = () =>
  localError({
    code: "files_off",
    category: "CONFIG",
    detail: "ERRAND_FILES says nowhere",
    recovery: "Set ERRAND_FILES to the folder or the bucket of the broker.",
  });

/** The new file would take the place of a folder or a device. */
const notAFile = (path: string) =>
  localError({
    code: "file_error",
    category: "CONFIG",
    detail: `${path} exists, and is not a regular file`,
    recovery: "Choose another path.",
  });

const fileExists = (path: string) =>
  localError({
    code: "file_exists",
    category: "PROTOCOL",
    detail: `${path} exists`,
    recovery: "Choose another name, or pass --force to replace it.",
  });
