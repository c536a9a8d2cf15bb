/**
 * The checks of `errand doctor` that need no broker: the settings, and the Redis that a broker would use. They connect to
 * an external Redis and look for the binary of an embedded one; they install nothing.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import type { Preflight } from "../cli/host.ts";
import { ConfigError, readConfig } from "../config.ts";
import { checkTarget, WrongTarget } from "../redis/check.ts";
import { findRedisServer } from "../redis/embedded/find-server.ts";
import { logfileIn } from "../redis/embedded/home.ts";
import { readLastLoad } from "../redis/embedded/log.ts";
import { placeOf, problemOf } from "../redis/target.ts";

export function preflight(env: NodeJS.ProcessEnv): Preflight {
  return {
    settings: () => problemsOf(env),
    lastLoad: (dataDir) => readLastLoad(logfileIn(dataDir)),
    redis: () => (env.ERRAND_REDIS_URL ? external(env.ERRAND_REDIS_URL) : embedded(env)),
  };
}

function problemsOf(env: NodeJS.ProcessEnv): readonly string[] {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

async function external(url: string) {
  // The URL may contain a password, and of a wrong URL nobody knows which part that is.
  const problem = problemOf(url);
  if (problem !== null)
    return { detail: "external", refused: [`ERRAND_REDIS_URL ${problem}`], warnings: [], isAway: false };
  const where = placeOf({ url });
  try {
    const { status, refused, warnings } = await checkTarget({ url });
    const { product, version, masters } = status;
    const kind = masters === undefined ? "" : `, a Cluster of ${masters} masters,`;
    return { detail: `external: ${product} ${version}${kind} at ${where}`, refused, warnings };
  } catch (error) {
    const reason = error instanceof Error ? error.message : "unknown";
    const isAway = !(error instanceof WrongTarget);
    const why = isAway ? `it does not respond (${reason})` : reason;
    return { detail: `external, at ${where}`, refused: [why], warnings: [], isAway };
  }
}

async function embedded(env: NodeJS.ProcessEnv) {
  const none = { refused: [], warnings: [] };
  try {
    const { command, version, flavor } = await findRedisServer({
      configured: env.ERRAND_REDIS_BIN || undefined,
      path: env.PATH ?? "",
      cacheDir: join(env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "errand"),
      announce: () => undefined,
      install: false,
    });
    return { detail: `embedded: ${flavor} ${version}, ${command}`, ...none };
  } catch (error) {
    const why = (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, " ");
    if (env.ERRAND_REDIS_BIN) return { detail: "embedded", ...none, refused: [why] };
    const warning =
      process.platform === "darwin"
        ? "no Redis is installed; run 'brew install redis'"
        : "no Redis is installed; 'errand serve' downloads one on Debian-based systems, elsewhere install it";
    return { detail: "embedded", ...none, warnings: [warning] };
  }
}
