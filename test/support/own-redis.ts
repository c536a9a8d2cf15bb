/** An embedded Redis in its own directory, which a test may stop and kill. Limit: takes a second to start. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { type EmbeddedRedis, startEmbedded } from "../../src/redis/embedded/embedded.ts";
import { testRedisBinary } from "./redis-server.ts";

export interface OwnRedis {
  /** The value that startGateway expects. */
  readonly target: { readonly socket: string; readonly password: string };
  readonly redis: Redis;
  readonly embedded: EmbeddedRedis;
  readonly signal: (signal: NodeJS.Signals) => void;
}

/** `dataDir`: an existing data directory, which is kept; default: an empty one. */
export async function startOwnRedis(
  fsync: "always" | "everysec" = "always",
  dataDir?: string,
): Promise<OwnRedis> {
  const directory = dataDir ?? (await mkdtemp(join(tmpdir(), "errand-own-")));
  if (dataDir === undefined) onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const embedded = await startEmbedded({
    dataDir: directory,
    fsync,
    binary: testRedisBinary,
    log: () => {},
  });
  const target = { socket: embedded.socket, password: embedded.password };
  const redis = new Redis({ path: target.socket, password: target.password });
  redis.on("error", () => {});
  const signal = (name: NodeJS.Signals) => {
    const pid = embedded.pid();
    if (pid === undefined) throw new Error("no Redis runs");
    process.kill(pid, name);
  };
  onTestFinished(async () => {
    // A stopped process would not receive the order to end.
    if (embedded.pid() !== undefined) signal("SIGCONT");
    redis.disconnect();
    await embedded.stop();
  });
  return { target, redis, embedded, signal };
}
