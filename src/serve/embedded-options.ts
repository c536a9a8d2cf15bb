/** The options of the embedded Redis, from the configuration. */
import { homedir } from "node:os";
import { join } from "node:path";
import type { Config } from "../config.ts";
import type { EmbeddedOptions } from "../redis/embedded/embedded.ts";
import { findRedisServer } from "../redis/embedded/find-server.ts";
import type { Log } from "../telemetry/log.ts";

/** `announce` gets a line when a server must be downloaded. */
export const embeddedOptions = (
  config: Pick<Config, "ERRAND_REDIS_FSYNC" | "ERRAND_REDIS_BIN">,
  env: NodeJS.ProcessEnv,
  dataDir: string,
  announce: (line: string) => void,
  log: Pick<Log, "info" | "warn" | "error">,
): EmbeddedOptions => ({
  dataDir,
  fsync: config.ERRAND_REDIS_FSYNC,
  runtimeDir: env.XDG_RUNTIME_DIR,
  binary: () =>
    findRedisServer({
      configured: config.ERRAND_REDIS_BIN,
      path: env.PATH ?? "",
      cacheDir: join(env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "errand"),
      announce,
    }),
  log: (level, message, fields) => log[level](fields ?? {}, message),
});
