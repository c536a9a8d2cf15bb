/**
 * `errand backup` and `errand restore`: find the Redis of a broker, which may run for a backup but not for a restore.
 * They use it directly, because a copy through the HTTP API would not show one instant.
 */
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { backUp } from "./backup/back-up.ts";
import { type BackupHeader, openBackup } from "./backup/backup-file.ts";
import { toLocalError } from "./backup/errors.ts";
import { RestoreError, restore } from "./backup/restore.ts";
import type { BackupSummary, Backups, Place } from "./cli/host.ts";
import { localError } from "./client/errors.ts";
import { type Config, ConfigError, readConfig } from "./config.ts";
import { embeddedOptions } from "./embedded-options.ts";
import { checkTarget } from "./redis/check.ts";
import { startEmbedded } from "./redis/embedded.ts";
import { DataDirError, existingHome } from "./redis/embedded-home.ts";
import { probe } from "./redis/embedded-server.ts";
import { RedisBinaryError } from "./redis/find-server.ts";
import { clusterOf, placeOf, type RedisTarget } from "./redis/target.ts";
import { createLog } from "./telemetry/log.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** A running Redis, and the function that releases it. */
interface Opened {
  readonly target: RedisTarget;
  readonly where: string;
  readonly close: () => Promise<void>;
}

export function backups(env: Env, errandVersion: string): Backups {
  return {
    backUp: ({ path, force, signal, onProgress, ...place }) =>
      explained(path, async () => {
        const found = await stat(path).catch(() => null);
        if (found !== null && !found.isFile()) throw notAFile(path);
        if (found !== null && !force) throw fileExists(path);
        const { target, where, close } = await openToRead(env, place);
        try {
          const header = await backUp(target, { path, errandVersion, onProgress, signal });
          return summary(path, where, header);
        } finally {
          await close();
        }
      }),
    restore: ({ path, force, check, signal, onProgress, ...place }) =>
      explained(path, async () => {
        const backup = await openBackup(path, signal);
        try {
          const { header } = backup;
          if (check) return summary(path, null, header);
          const opened = await openToWrite(env, place);
          try {
            const isExclusive = opened.target.socket !== undefined;
            await restore(opened.target, backup, {
              force,
              isExclusive,
              signal,
              onProgress: (keys) => onProgress(keys, header.keys),
            });
          } finally {
            await opened.close();
          }
          return summary(path, opened.where, header);
        } finally {
          await backup.close();
        }
      }),
  };
}

const summary = (file: string, redis: string | null, header: BackupHeader): BackupSummary => {
  const { errand_backup: format, ...rest } = header;
  return { file, redis, format, ...rest };
};

async function openToRead(env: Env, place: Place): Promise<Opened> {
  const config = configOf(env, place);
  if (config.ERRAND_REDIS_URL !== undefined) return openExternal(config.ERRAND_REDIS_URL);
  const dataDir = dataDirOf(config);
  const home = await existingHome(dataDir, env.XDG_RUNTIME_DIR);
  if (home === null) {
    throw localError({
      code: "no_data",
      category: "CONFIG",
      detail: `${dataDir} has no data of a broker`,
      recovery: "Pass --data-dir, or --redis-url if the broker uses an external Redis.",
    });
  }
  // The running Redis is used directly: root may do so, but must not start one in another user's directory.
  const { state } = await probe(home.socket, home.password);
  if (state === "ready") return { target: home, where: dataDir, close: async () => undefined };
  return startHere(config, env, dataDir);
}

async function openToWrite(env: Env, place: Place): Promise<Opened> {
  const config = configOf(env, place);
  const { ERRAND_REDIS_URL: url } = config;
  if (url === undefined) return startHere(config, env, dataDirOf(config), "alone");
  const { refused, ...opened } = await openExternal(url);
  if (refused.length === 0) return opened;
  throw localError({
    code: "redis_refused",
    category: "CONFIG",
    detail: `Redis at ${opened.where}: ${refused.join("; ")}`,
    recovery: "Change the settings of that Redis. Nothing was changed.",
  });
}

async function openExternal(url: string): Promise<Opened & { readonly refused: readonly string[] }> {
  const { target, refused } = await checkTarget({ url }).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : "unknown";
    throw new RestoreError("unreachable", `Redis does not respond: ${reason}`);
  });
  if (clusterOf(target) !== null) {
    throw localError({
      code: "redis_cluster",
      category: "CONFIG",
      detail: `Redis at ${placeOf(target)} is a Cluster, whose masters cannot be copied at one instant`,
      recovery: "Use the snapshots of your provider, or 'redis-cli --cluster backup'. Nothing was changed.",
    });
  }
  return { target, where: placeOf(target), close: async () => undefined, refused };
}

async function startHere(config: Config, env: Env, dataDir: string, alone?: "alone"): Promise<Opened> {
  const silent = createLog("silent", () => undefined);
  const say = (line: string) => void process.stderr.write(`${line}\n`);
  const redis = await startEmbedded(embeddedOptions(config, env, dataDir, say, silent)).catch((error) => {
    const isConfig = error instanceof DataDirError || error instanceof RedisBinaryError;
    throw localError({
      code: "redis_not_started",
      category: isConfig ? "CONFIG" : "TRANSPORT",
      detail: error instanceof Error ? error.message : String(error),
      recovery: "Nothing was changed.",
    });
  });
  if (alone && redis.adopted) throw new RestoreError("in_use", `a broker runs on ${dataDir}`);
  const { socket, password } = redis;
  return { target: { socket, password }, where: dataDir, close: () => redis.stop() };
}

function configOf(env: Env, { dataDir, redisUrl, foundDataDir }: Place): Config {
  // Otherwise a trial restore into a directory would replace the data in the Redis that the settings name.
  if (dataDir !== undefined)
    return readConfig({ ...env, ERRAND_DATA_DIR: dataDir, ERRAND_REDIS_URL: undefined });
  return readConfig({
    ...env,
    ...(foundDataDir !== undefined && { ERRAND_DATA_DIR: foundDataDir }),
    ...(redisUrl !== undefined && { ERRAND_REDIS_URL: redisUrl }),
  });
}

const dataDirOf = (config: Config): string => resolve(config.ERRAND_DATA_DIR ?? ".errand");

async function explained<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw toLocalError(error, path);
    throw localError({
      code: "configuration",
      category: "CONFIG",
      detail: `${error.message} ${error.problems.join("; ")}`,
      recovery: "Correct or unset these variables.",
    });
  }
}

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
