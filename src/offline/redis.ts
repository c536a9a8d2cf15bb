/**
 * Finds the Redis of a broker for commands that use it directly, and starts it when the broker is stopped and has one of
 * its own.
 */
import { resolve } from "node:path";
import { toLocalError } from "../backup/errors.ts";
import { TransferError } from "../backup/transfer-error.ts";
import type { Place } from "../cli/host.ts";
import { localError } from "../client/errors.ts";
import { type Config, ConfigError, readConfig } from "../config.ts";
import type { FileStore } from "../engine/files/store.ts";
import { checkTarget, WrongTarget } from "../redis/check.ts";
import { startEmbedded } from "../redis/embedded/embedded.ts";
import { RedisBinaryError } from "../redis/embedded/find-server.ts";
import { DataDirError, existingHome } from "../redis/embedded/home.ts";
import { probe } from "../redis/embedded/server.ts";
import { placeOf, type RedisTarget } from "../redis/target.ts";
import { embeddedOptions } from "../serve/embedded-options.ts";
import { fileStoreOf } from "../serve/file-store.ts";
import { createLog } from "../telemetry/log.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** A running Redis, and the function that releases it. */
export interface Opened {
  readonly target: RedisTarget;
  readonly where: string;
  /** Where the broker's files are; null: nowhere. */
  readonly files: FileStore | null;
  readonly close: () => Promise<void>;
}

/** For a broker that may run. */
export async function openToRead(env: Env, place: Place): Promise<Opened> {
  const config = configOf(env, place);
  if (config.ERRAND_REDIS_URL !== undefined) return openExternal(config, config.ERRAND_REDIS_URL, place);
  const dataDir = dataDirOf(config);
  const home = await requireHome(dataDir, env);
  // The running Redis is used directly: root may do so, but must not start one in another user's directory.
  const { state } = await probe(home.socket, home.password);
  if (state === "ready") {
    const files = fileStoreOf(config, home, silentLog());
    return { target: home, where: dataDir, files, close: async () => undefined };
  }
  return startHere(config, env, dataDir);
}

/** The data of a broker that is stopped, to be copied or changed. */
export async function openStopped(env: Env, place: Place): Promise<Opened> {
  const config = configOf(env, place);
  if (config.ERRAND_REDIS_URL !== undefined) return openExternal(config, config.ERRAND_REDIS_URL, place);
  const dataDir = dataDirOf(config);
  await requireHome(dataDir, env);
  return startHere(config, env, dataDir, { mustBeStopped: true });
}

/** The data directory that {@link openToWrite} would create; null if it exists, or an external Redis is used. */
export async function newDataDir(env: Env, place: Place): Promise<string | null> {
  const config = configOf(env, place);
  if (config.ERRAND_REDIS_URL !== undefined) return null;
  const dataDir = dataDirOf(config);
  return (await existingHome(dataDir, env.XDG_RUNTIME_DIR)) === null ? dataDir : null;
}

async function requireHome(dataDir: string, env: Env) {
  const home = await existingHome(dataDir, env.XDG_RUNTIME_DIR);
  if (home !== null) return home;
  throw localError({
    code: "no_data",
    category: "CONFIG",
    detail: `${dataDir} has no data of a broker`,
    recovery: "Pass --data-dir, or --redis-url if the broker uses an external Redis.",
  });
}

/** The broker must be stopped. A Redis of its own must have settings that keep its work. */
export async function openToWrite(env: Env, place: Place): Promise<Opened> {
  const config = configOf(env, place);
  const { ERRAND_REDIS_URL: url } = config;
  if (url === undefined) return startHere(config, env, dataDirOf(config), { mustBeStopped: true });
  const { refused, ...opened } = await openExternal(config, url, place);
  if (refused.length === 0) return opened;
  throw localError({
    code: "redis_refused",
    category: "CONFIG",
    detail: `Redis at ${opened.where}: ${refused.join("; ")}`,
    recovery: "Change the settings of that Redis. Nothing was changed.",
  });
}

/** Names the option instead of the variable, if the address comes from one. */
const named = (text: string, { redisUrl, redisFlag = "--redis-url" }: Place): string =>
  redisUrl === undefined ? text : text.replaceAll("ERRAND_REDIS_URL", redisFlag);

async function openExternal(
  config: Config,
  url: string,
  place: Place,
): Promise<Opened & { readonly refused: readonly string[] }> {
  const { target, refused } = await checkTarget({ url }).catch((error: unknown) => {
    if (error instanceof WrongTarget) throw wrongTarget(error, place);
    const reason = error instanceof Error ? error.message : "unknown";
    throw new TransferError(
      "unreachable",
      `Redis at ${named("ERRAND_REDIS_URL", place)} does not respond: ${reason}`,
    );
  });
  const files = fileStoreOf(config, target, silentLog());
  return { target, where: placeOf(target), files, close: async () => undefined, refused };
}

const wrongTarget = (error: WrongTarget, place: Place) =>
  localError(
    {
      code: "redis_url_wrong",
      category: "CONFIG",
      detail: named(error.message.replace(/\.$/, ""), place),
      recovery: "Nothing was changed.",
    },
    error,
  );

async function startHere(
  config: Config,
  env: Env,
  dataDir: string,
  { mustBeStopped = false } = {},
): Promise<Opened> {
  const silent = silentLog();
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
  if (mustBeStopped && redis.adopted) throw new TransferError("in_use", `a broker runs on ${dataDir}`);
  const { socket, password } = redis;
  const target = { socket, password };
  return { target, where: dataDir, files: fileStoreOf(config, target, silent), close: () => redis.stop() };
}

function configOf(env: Env, place: Place): Config {
  try {
    return readPlace(env, place);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(error.problems.map((problem) => named(problem, place)));
  }
}

function readPlace(env: Env, { dataDir, redisUrl, foundDataDir }: Place): Config {
  // Otherwise a trial restore into a directory would replace the data in the Redis that the settings name.
  if (dataDir !== undefined)
    return readConfig({ ...env, ERRAND_DATA_DIR: dataDir, ERRAND_REDIS_URL: undefined });
  return readConfig({
    ...env,
    ...(foundDataDir !== undefined && { ERRAND_DATA_DIR: foundDataDir }),
    ...(redisUrl !== undefined && { ERRAND_REDIS_URL: redisUrl }),
  });
}

const silentLog = () => createLog("silent", () => undefined);

const dataDirOf = (config: Config): string => resolve(config.ERRAND_DATA_DIR ?? ".errand");

/** Turns what can go wrong into errors of the CLI. `path` is a file that the command uses. */
export async function explained<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw toLocalError(error, path);
    throw localError({
      code: "configuration",
      category: "CONFIG",
      detail: `${error.message} ${error.problems.join("; ")}`,
      recovery: "Correct or unset these settings.",
    });
  }
}
