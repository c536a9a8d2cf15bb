/** Turns what can go wrong with a backup or a migration into errors of the CLI: a code, an exit code, and what to do next. */
import { type ErrandApiError, localError } from "../client/errors.ts";
import type { Category } from "../schema/errors.ts";
import { BackupFileError, BackupWriteError } from "./backup-file.ts";
import { MigrationError } from "./migration/migrate.ts";
import { RdbError } from "./rdb-strings.ts";
import { SnapshotRefused } from "./snapshot.ts";
import { TransferError } from "./transfer-error.ts";

interface Advice {
  readonly code: string;
  readonly category: Category;
  readonly recovery: string;
}

const TRANSFER_ADVICE: Readonly<Record<TransferError["reason"], Advice>> = {
  in_use: {
    code: "broker_running",
    category: "PROTOCOL",
    recovery: "Stop the broker first. Nothing was changed.",
  },
  in_progress: {
    code: "transfer_running",
    category: "PROTOCOL",
    recovery: "Wait until it ends, then run this command if it is still needed. Nothing was changed.",
  },
  not_empty: {
    code: "data_exists",
    category: "PROTOCOL",
    recovery: "Choose an empty place, or pass --force to delete that data. Nothing was changed.",
  },
  too_old: {
    code: "redis_too_old",
    category: "CONFIG",
    recovery: "Use a Redis of that version or a newer one. Nothing was changed.",
  },
  unreachable: {
    code: "redis_unavailable",
    category: "TRANSPORT",
    recovery: "Check that Redis runs and that the address is right. Nothing was changed.",
  },
  unfinished: {
    code: "transfer_unfinished",
    category: "TRANSPORT",
    recovery: "Let that command end, and run it again if it failed; then back up. No file was written.",
  },
  growing: {
    code: "migration_unfinished",
    category: "PROTOCOL",
    recovery:
      "Run 'errand migrate' again, with that number of shards, until it ends; then back up. No file was written.",
  },
  taken_over: {
    code: "transfer_taken_over",
    category: "TRANSPORT",
    recovery: "Let the other command end. If no broker starts then, run this command again.",
  },
  failed: {
    code: "restore_failed",
    category: "TRANSPORT",
    recovery: "Only a part was written, and no broker starts on it. Fix the cause and run the command again.",
  },
};

const FAILED = { code: "transfer_failed", category: "TRANSPORT" } as const;

const MIGRATION_ADVICE: Readonly<Record<MigrationError["reason"], Advice>> = {
  no_data: {
    code: "no_data",
    category: "CONFIG",
    recovery: "Name the broker's data directory or Redis by --data-dir or --redis-url. Nothing was changed.",
  },
  unreadable: { code: "data_unreadable", category: "CONFIG", recovery: "Nothing was changed." },
  unfinished: {
    code: "migration_unfinished",
    category: "PROTOCOL",
    recovery: "Run that command again until it ends, then this one. Nothing was changed.",
  },
  same_redis: {
    code: "same_redis",
    category: "PROTOCOL",
    recovery:
      "Name another Redis by --to; to change only the number of shards, leave it out. Nothing was changed.",
  },
  replica: {
    code: "redis_is_replica",
    category: "CONFIG",
    recovery: "Name its master, or a Redis that replicates no other. Nothing was changed.",
  },
  wrong_shards: {
    code: "wrong_shards",
    category: "PROTOCOL",
    recovery: "Choose a number from the present one to 256, or leave --shards out. Nothing was changed.",
  },
  source_changed: {
    code: "source_changed",
    category: "TRANSPORT",
    recovery:
      "Stop that broker and run the command again. No broker starts on the copy; this command did not write to the source.",
  },
  failed: {
    ...FAILED,
    recovery:
      "Only a part was copied, and no broker starts on it; this command did not write to the source. Fix the cause and run the command again.",
  },
  growth_failed: {
    ...FAILED,
    recovery:
      "All data is still there, but no broker starts on it before the shards are raised. Fix the cause and run the command again.",
  },
  differs: {
    code: "migration_failed",
    category: "TRANSPORT",
    recovery:
      "This command did not write to the source, and no broker starts on the copy. Run the command again.",
  },
};

/** Anything else is returned as it is. */
export function toLocalError(error: unknown, path: string): unknown {
  if (error instanceof MigrationError) return withAdvice(error, MIGRATION_ADVICE[error.reason]);
  if (error instanceof TransferError) return withAdvice(error, TRANSFER_ADVICE[error.reason]);
  if (error instanceof BackupFileError) {
    const recovery = "Use another backup. Nothing was changed.";
    return withAdvice(error, { code: "backup_damaged", category: "PROTOCOL", recovery }, `${path}: `);
  }
  if (error instanceof BackupWriteError) {
    const recovery = "Free space there, or choose another path. No backup was written.";
    return withAdvice(error, { code: "file_error", category: "CONFIG", recovery }, `${path}: `);
  }
  if (error instanceof SnapshotRefused) {
    const recovery =
      "Allow this user SYNC and REPLCONF, or use the snapshots of your provider. No file was written.";
    return withAdvice(error, { code: "snapshot_refused", category: "CONFIG", recovery }, "Redis: ");
  }
  if (error instanceof RdbError) {
    const recovery = "Run the command again; if it fails again, report this error. No file was written.";
    return withAdvice(error, { code: "snapshot_failed", category: "TRANSPORT", recovery });
  }
  if (error instanceof Error && "syscall" in error && "code" in error && "path" in error) {
    const isMissing = error.code === "ENOENT";
    return localError(
      {
        code: isMissing ? "file_not_found" : "file_error",
        category: "CONFIG",
        detail: `${String(error.path)}: ${String(error.code)}`,
        recovery: isMissing ? "Correct the path." : "Choose another path, or fix this one.",
        ...(isMissing && { status: 404 }),
      },
      error,
    );
  }
  return error;
}

const withAdvice = (error: Error, advice: Advice, before = ""): ErrandApiError =>
  localError({ ...advice, detail: `${before}${error.message}` }, error);
