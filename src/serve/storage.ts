/** Where a broker keeps its data: the data directory with the operator token, and its Redis. */
import { chmod, link, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Config, EXIT_CONFIG, OPERATOR_TOKEN, OPERATOR_TOKEN_FORM } from "../config.ts";
import { checkTarget, WrongTarget } from "../redis/check.ts";
import { type EmbeddedRedis, startEmbedded } from "../redis/embedded/embedded.ts";
import { RedisBinaryError } from "../redis/embedded/find-server.ts";
import { DataDirError, secureDataDir } from "../redis/embedded/home.ts";
import { randomId } from "../redis/shards.ts";
import type { RedisTarget } from "../redis/target.ts";
import type { Log } from "../telemetry/log.ts";
import { EncodingError, utf8 } from "../util/text.ts";
import { embeddedOptions } from "./embedded-options.ts";
import { EXIT_TRANSPORT, ServeError } from "./errors.ts";

export interface Storage {
  readonly target: RedisTarget;
  readonly embedded: EmbeddedRedis | null;
}

export async function checkDataDir(dataDir: string): Promise<void> {
  try {
    await secureDataDir(dataDir);
  } catch (error) {
    if (error instanceof DataDirError) throw new ServeError(error.message, EXIT_CONFIG);
    const why = error instanceof Error ? error.message : String(error);
    throw new ServeError(`the data directory ${dataDir} cannot be prepared: ${why}`, EXIT_TRANSPORT);
  }
}

export async function openStorage(
  config: Config,
  env: NodeJS.ProcessEnv,
  dataDir: string,
  say: (line: string) => void,
  log: Log,
): Promise<Storage> {
  if (config.ERRAND_REDIS_URL !== undefined) {
    const target = await checkExternal({ url: config.ERRAND_REDIS_URL }, config.ERRAND_SHARDS, log);
    return { target, embedded: null };
  }
  if (config.ERRAND_REDIS_WAIT_REPLICAS > 0) {
    throw new ServeError(
      "ERRAND_REDIS_WAIT_REPLICAS needs a Redis with replicas; set ERRAND_REDIS_URL, or unset it: the private Redis has none",
      EXIT_CONFIG,
    );
  }
  try {
    const embedded = await startEmbedded(embeddedOptions(config, env, dataDir, say, log));
    return { target: { socket: embedded.socket, password: embedded.password }, embedded };
  } catch (error) {
    const exitCode = error instanceof RedisBinaryError ? EXIT_CONFIG : EXIT_TRANSPORT;
    throw new ServeError(error instanceof Error ? error.message : String(error), exitCode);
  }
}

/** Returns the target, marked if it is a Cluster. */
async function checkExternal(given: RedisTarget, shards: number, log: Log): Promise<RedisTarget> {
  const { target, refused, warnings, status } = await checkTarget(given).catch((error: unknown) => {
    if (error instanceof WrongTarget) throw new ServeError(error.message, EXIT_CONFIG);
    const reason = error instanceof Error ? error.message : "unknown";
    throw new ServeError(
      `Redis at ERRAND_REDIS_URL does not respond (${reason}); check that it is running and the URL is correct`,
      EXIT_TRANSPORT,
    );
  });
  for (const warning of warnings) log.warn(`Redis: ${warning}`);
  if (refused.length > 0) throw new ServeError(`Redis: ${refused.join("; ")}`, EXIT_CONFIG);
  const { masters = 1 } = status;
  if (shards < masters) {
    log.warn(
      `Redis: a Cluster of ${masters} masters, and ERRAND_SHARDS is ${shards}: most of the work is on ${shards === 1 ? "one of them" : `${shards} of them`}`,
    );
  }
  return target;
}

/** The operator token, created at the first start. Anyone who can read the data directory can act as the operator. */
export async function operatorTokenIn(dataDir: string): Promise<string> {
  const path = join(dataDir, "operator-token");
  if (!(await stat(path).catch(() => null))) {
    // A crash half-way must not leave an empty file, so the file is linked when it is complete.
    const draft = `${path}.${process.pid}`;
    await writeFile(draft, `errand_operator_${randomId(52)}\n`, { mode: 0o600 });
    await link(draft, path).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    });
    await rm(draft, { force: true });
  }
  if (((await stat(path)).mode & 0o077) !== 0) await chmod(path, 0o600);
  const bytes = await readFile(path);
  try {
    const token = utf8(bytes, path).trim();
    if (OPERATOR_TOKEN.test(token)) return token;
  } catch (error) {
    if (!(error instanceof EncodingError)) throw error;
    throw new ServeError(`${error.message}. ${error.remedy}`, EXIT_CONFIG);
  }
  throw new ServeError(
    `${path} contains no valid token (${OPERATOR_TOKEN_FORM}); delete it, and the next start creates one`,
    EXIT_CONFIG,
  );
}
