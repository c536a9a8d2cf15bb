/**
 * A Redis Cluster of three masters with a replica each, for a run. A node is never away long enough to be replaced: then
 * nothing that was acknowledged may be lost. `npm run prove -- failover` loses masters.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Cluster } from "ioredis";
import { type ClusterNode, type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { testRedisBinary } from "../support/redis-server.ts";
import { until } from "../support/until.ts";
import { type ChaosRedis, type RedisNode, scanServer } from "./chaos-redis.ts";

/** Longer than any fault lasts, and than a restart takes on a busy machine. */
const NODE_TIMEOUT_MS = 60_000;
/** A node that was elected is not elected again before: Redis takes it for the same, expired attempt. */
const ELECTED_AGAIN_MS = 4 * NODE_TIMEOUT_MS + 5_000;

export class RedisClusterProcesses implements ChaosRedis {
  readonly socket = null;
  readonly #directory: string;
  readonly #fsync: string;
  #cluster: RedisCluster | undefined;
  #nodes: readonly RedisNode[] = [];
  /** When nodes asked to become masters. */
  readonly #electedAt = new Map<ClusterNode, number>();

  constructor(directory: string, fsync: "always" | "everysec") {
    this.#directory = directory;
    this.#fsync = fsync;
  }

  get cluster(): RedisCluster {
    if (!this.#cluster) throw new Error("the Cluster is not started");
    return this.#cluster;
  }

  get nodes(): readonly RedisNode[] {
    return this.#nodes;
  }

  get client(): Cluster {
    return this.cluster.client;
  }

  get url(): string {
    return this.cluster.url;
  }

  async start(): Promise<void> {
    const directory = join(this.#directory, "redis");
    mkdirSync(directory);
    this.#cluster = await startRedisCluster({
      binary: await testRedisBinary(),
      nodeTimeoutMs: NODE_TIMEOUT_MS,
      directory,
      more: [
        "appendonly yes",
        `appendfsync ${this.#fsync}`,
        "maxmemory 512mb",
        "cluster-require-full-coverage no",
      ],
    });
    this.#nodes = this.#cluster.nodes.map(toNode);
  }

  async scan(pattern: string): Promise<Set<string>> {
    const names = new Set<string>();
    for (const { redis } of await this.cluster.masters()) {
      for (const name of await scanServer(redis, pattern)) names.add(name);
    }
    return names;
  }

  /** Moves the slot of a key to the next master. */
  async moveSlot(key: string): Promise<void> {
    await this.cluster.untilHealthy();
    const from = await this.cluster.masterOf(key);
    const masters = await this.cluster.masters();
    const to = masters[(masters.indexOf(from) + 1) % masters.length];
    if (to) await this.cluster.moveSlot(key, to);
  }

  /**
   * The master of a key changes places with its replica, which first gets everything; nothing happens if that one was
   * elected lately.
   */
  async handOver(key: string): Promise<void> {
    await this.cluster.untilHealthy();
    const master = await this.cluster.masterOf(key);
    const id = await master.id();
    const lines = String(await master.redis.cluster("NODES")).split("\n");
    const replica = this.cluster.nodes.find(({ address }) =>
      lines.some((line) => line.includes(` ${address}@`) && line.includes(` slave ${id} `)),
    );
    if (!replica) throw new Error(`${master.address} has no replica`);
    const now = performance.now();
    if (now - (this.#electedAt.get(replica) ?? Number.NEGATIVE_INFINITY) < ELECTED_AGAIN_MS) return;
    this.#electedAt.set(replica, now);
    await replica.redis.cluster("FAILOVER");
    await until(async () => (await this.cluster.masterOf(key)) !== master, { what: "the new master" });
  }

  async close(): Promise<void> {
    await this.#cluster?.stop();
  }
}

function toNode(node: ClusterNode, at: number): RedisNode {
  const name = `redis-${at}`;
  return {
    name,
    get isRunning() {
      return node.isRunning();
    },
    start: () => node.restart(),
    signal: node.signal,
    async end(signal) {
      node.signal("SIGCONT");
      node.signal(signal);
      await until(() => !node.isRunning(), { what: `the end of ${name}` });
    },
  };
}
