/**
 * A Redis for the benchmark: the embedded one, on a private socket in a temporary directory, configured as users have
 * it. Limit: two settings differ (see docs/benchmarks.md): no memory cap, and no rewrite of the append-only file during
 * a measurement.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type EmbeddedRedis, startEmbedded } from "../src/redis/embedded/embedded.ts";
import { findRedisServer } from "../src/redis/embedded/find-server.ts";

export const FSYNCS = ["always", "everysec"] as const;
export type Fsync = (typeof FSYNCS)[number];

export interface RedisUsage {
  /** Calls and their time, by command; commands within a script count separately, too. */
  readonly by: ReadonlyMap<string, { readonly calls: number; readonly us: number }>;
  readonly commands: number;
  readonly scripts: number;
  /** User and system time, all its threads. */
  readonly cpu_us: number;
}

const numberIn = (info: string, name: string): number =>
  Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1] ?? 0);

const open = new Set<Stage>();

/** Cleans up everything when a signal ends the run. */
export async function closeStages(): Promise<void> {
  await Promise.all([...open].map((stage) => stage.close()));
}

export class Stage {
  readonly redis: Redis;
  readonly socket: string;
  readonly password: string;
  /** A data directory: a broker that starts there uses this Redis. */
  readonly directory: string;
  readonly #embedded: EmbeddedRedis;

  private constructor(directory: string, embedded: EmbeddedRedis) {
    this.directory = directory;
    this.#embedded = embedded;
    this.socket = embedded.socket;
    this.password = embedded.password;
    this.redis = new Redis({ path: embedded.socket, password: embedded.password });
    this.redis.on("error", () => {});
  }

  static async open(): Promise<Stage> {
    const directory = await mkdtemp(join(tmpdir(), "errand-bench-"));
    const embedded = await startEmbedded({
      dataDir: directory,
      fsync: "always",
      binary: () =>
        findRedisServer({
          configured: process.env.ERRAND_REDIS_BIN,
          path: process.env.PATH ?? "",
          cacheDir: join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "errand"),
          announce: (line) => process.stderr.write(`${line}\n`),
        }),
      log: () => {},
    });
    const stage = new Stage(directory, embedded);
    open.add(stage);
    await stage.redis.config("SET", "maxmemory", "0", "auto-aof-rewrite-percentage", "0");
    return stage;
  }

  async fsync(mode: Fsync | "no"): Promise<void> {
    await this.redis.config("SET", "appendfsync", mode);
  }

  async version(): Promise<string> {
    const info = await this.redis.info("server");
    return /^redis_version:(\S+)/m.exec(info)?.[1] ?? "unknown";
  }

  async usedMemory(): Promise<number> {
    return numberIn(await this.redis.info("memory"), "used_memory");
  }

  /** Connections, without the benchmark's own. */
  async connections(): Promise<number> {
    return numberIn(await this.redis.info("clients"), "connected_clients") - 1;
  }

  /** Starts to count commands; CPU is counted from the start of the server. */
  async mark(): Promise<RedisUsage> {
    await this.redis.config("RESETSTAT");
    return this.usage();
  }

  async usage(): Promise<RedisUsage> {
    const cpu = await this.redis.info("cpu");
    const stats = await this.redis.info("commandstats");
    const by = new Map<string, { calls: number; us: number }>();
    let commands = 0;
    let scripts = 0;
    for (const [, name = "", calls, us] of stats.matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm)) {
      // The benchmark's own commands are not part of the load.
      if (name.startsWith("info") || name.startsWith("config")) continue;
      by.set(name, { calls: Number(calls), us: Number(us) });
      commands += Number(calls);
      if (name === "evalsha" || name === "eval") scripts += Number(calls);
    }
    const cpu_us = 1e6 * (numberIn(cpu, "used_cpu_user") + numberIn(cpu, "used_cpu_sys"));
    return { by, commands, scripts, cpu_us };
  }

  /** The slowest commands since {@link watchSlow}, and other causes of delay in Redis. */
  async slow(): Promise<string> {
    const log = await this.redis.call("SLOWLOG", "GET", "8");
    const latency = await this.redis.call("LATENCY", "LATEST");
    return `SLOWLOG ${JSON.stringify(log).slice(0, 2_000)}\nLATENCY ${JSON.stringify(latency)}`;
  }

  async watchSlow(): Promise<void> {
    await this.redis.config("SET", "slowlog-log-slower-than", "2000", "latency-monitor-threshold", "5");
    await this.redis.call("SLOWLOG", "RESET");
    await this.redis.call("LATENCY", "RESET");
  }

  async close(): Promise<void> {
    open.delete(this);
    this.redis.disconnect();
    await this.#embedded.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}
