/**
 * A Redis Cluster on loopback: three masters, with or without a replica each, on ports that the kernel chooses. Limit: no
 * password; the processes end with this one.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster, Redis } from "ioredis";
import type { RedisServerBinary } from "../../src/redis/embedded/find-server.ts";
import { type LockedProcess, startLocked } from "../../src/redis/embedded/locked-process.ts";
import { until } from "./until.ts";

const SLOTS = 16_384;
const MASTERS = 3;
/** Keys of one MIGRATE; `redis-cli --cluster reshard` moves as many. */
const MOVED_AT_ONCE = 10;

export interface ClusterNode {
  readonly port: number;
  readonly address: string;
  /** A connection to this node alone. */
  readonly redis: Redis;
  readonly id: () => Promise<string>;
  readonly signal: (signal: NodeJS.Signals) => void;
  readonly pid: () => number | undefined;
  readonly isRunning: () => boolean;
  /** Starts it again, with what it has on disk. */
  readonly restart: () => Promise<void>;
}

export interface RedisCluster {
  /** For ERRAND_REDIS_URL. */
  readonly url: string;
  readonly nodes: readonly ClusterNode[];
  /** Follows every fail-over. */
  readonly client: Cluster;
  readonly masters: () => Promise<ClusterNode[]>;
  readonly masterOf: (key: string) => Promise<ClusterNode>;
  /**
   * Moves the slot of a key, key by key, as `redis-cli --cluster reshard` does. `halfWay` runs when the keys that `isFirst`
   * chooses have moved.
   */
  readonly moveSlot: (
    key: string,
    to: ClusterNode,
    isFirst?: (name: string) => boolean,
    halfWay?: () => Promise<void>,
  ) => Promise<void>;
  /** All slots are served, and every master has its replica. */
  readonly untilHealthy: () => Promise<void>;
  readonly flush: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export interface ClusterOptions {
  readonly binary: RedisServerBinary;
  readonly withReplicas?: boolean;
  /** How long a node may be silent before the others replace it. */
  readonly nodeTimeoutMs?: number;
  /** Further lines of each node's configuration. */
  readonly more?: readonly string[];
  /** Where the nodes keep their files; default: a temporary folder. */
  readonly directory?: string;
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.once("error", reject);
          server.listen(0, "127.0.0.1", () => {
            const address = server.address();
            resolve(typeof address === "object" && address !== null ? address.port : 0);
          });
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

async function startNode(
  directory: string,
  [port = 0, busPort = 0]: readonly number[],
  { binary, nodeTimeoutMs = 2_000, more = [] }: ClusterOptions,
): Promise<ClusterNode & { readonly stop: () => Promise<void> }> {
  const config = [
    `dir "${directory}"`,
    "bind 127.0.0.1",
    `port ${port}`,
    `logfile "${join(directory, `${port}.log`)}"`,
    `dbfilename ${port}.rdb`,
    `appenddirname aof-${port}`,
    'save ""',
    "maxmemory-policy noeviction",
    "cluster-enabled yes",
    `cluster-port ${busPort}`,
    `cluster-config-file ${port}.conf`,
    "cluster-announce-ip 127.0.0.1",
    `cluster-node-timeout ${nodeTimeoutMs}`,
    "cluster-replica-validity-factor 0",
    "repl-diskless-sync-delay 0",
    "shutdown-timeout 0",
    ...more,
  ];
  let server: LockedProcess | undefined;
  const start = async () => {
    const started = await startLocked(join(directory, `${port}.lock`), [binary.command, "-"], binary.env);
    started.stdin?.end(`${config.join("\n")}\n`);
    started.stdout?.resume();
    server = started;
  };
  await start();
  const redis = new Redis({ port, host: "127.0.0.1", maxRetriesPerRequest: null, retryStrategy: () => 50 });
  redis.on("error", () => {});
  const ready = () =>
    until(
      () => {
        const exit = server?.exit();
        if (exit) throw new Error(`the Redis on port ${port} ended: ${exit.stderr}`);
        return redis.status === "ready" ? redis.ping() : null;
      },
      { what: `the Redis on port ${port}` },
    );
  await ready();
  return {
    port,
    address: `127.0.0.1:${port}`,
    redis,
    id: async () => String(await redis.cluster("MYID")),
    signal: (signal) => server?.kill(signal),
    pid: () => server?.pid,
    isRunning: () => server?.exit() === undefined,
    restart: async () => {
      await server?.exited;
      await start();
      await ready();
    },
    stop: async () => {
      redis.disconnect();
      server?.kill("SIGKILL");
      await server?.exited;
    },
  };
}

export async function startRedisCluster(options: ClusterOptions): Promise<RedisCluster> {
  const directory = options.directory ?? (await mkdtemp(join(tmpdir(), "errand-cluster-")));
  const count = options.withReplicas === false ? MASTERS : 2 * MASTERS;
  const ports = await freePorts(2 * count);
  const nodes = await Promise.all(
    Array.from({ length: count }, (_, n) => startNode(directory, ports.slice(2 * n, 2 * n + 2), options)),
  );
  const stopNodes = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
    if (options.directory === undefined) await rm(directory, { recursive: true, force: true });
  };
  try {
    await meet(nodes, ports);
  } catch (error) {
    await stopNodes();
    throw error;
  }
  const url = `redis://${nodes.map(({ address }) => address).join(",")}`;
  const client = new Cluster(
    nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
    {
      redisOptions: { maxRetriesPerRequest: null },
      slotsRefreshInterval: 500,
      clusterRetryStrategy: () => 50,
    },
  );
  client.on("error", () => {});
  const masters = () => mastersOf(nodes);
  const slotOf = async (key: string) =>
    Number(await nodes.find(({ isRunning }) => isRunning())?.redis.cluster("KEYSLOT", key));
  const masterOf = async (key: string) => {
    const slot = await slotOf(key);
    return until(async () => (await masters()).find(({ ranges }) => includes(ranges, slot))?.node);
  };
  return {
    url,
    nodes,
    client,
    masters: async () => (await masters()).map(({ node }) => node),
    masterOf,
    moveSlot: async (key, to, isFirst = () => false, halfWay = async () => {}) => {
      const [slot, from] = [await slotOf(key), await masterOf(key)];
      if (from !== to) await moveSlot(nodes, slot, from, to, isFirst, halfWay);
    },
    untilHealthy: async () => {
      await until(() => isHealthy(nodes, count), { what: "a healthy cluster" });
    },
    flush: async () => {
      await Promise.all((await masters()).map(({ node }) => node.redis.flushall()));
    },
    stop: async () => {
      client.disconnect();
      await stopNodes();
    },
  };
}

async function moveSlot(
  nodes: readonly ClusterNode[],
  slot: number,
  from: ClusterNode,
  to: ClusterNode,
  isFirst: (name: string) => boolean,
  halfWay: () => Promise<void>,
): Promise<void> {
  const [fromId, toId] = [await from.id(), await to.id()];
  await to.redis.call("CLUSTER", "SETSLOT", slot, "IMPORTING", fromId);
  await from.redis.call("CLUSTER", "SETSLOT", slot, "MIGRATING", toId);
  const move = async (isChosen: (name: string) => boolean) => {
    const found = await from.redis.call("CLUSTER", "GETKEYSINSLOT", slot, 10_000);
    const names = Array.isArray(found) ? found.map(String).filter(isChosen) : [];
    for (let at = 0; at < names.length; at += MOVED_AT_ONCE) {
      const some = names.slice(at, at + MOVED_AT_ONCE);
      await from.redis.call("MIGRATE", "127.0.0.1", to.port, "", 0, 5_000, "KEYS", ...some);
    }
    return names.length;
  };
  await move(isFirst);
  await halfWay();
  while ((await move(() => true)) > 0);
  for (const node of [to, from, ...nodes]) {
    await node.redis.call("CLUSTER", "SETSLOT", slot, "NODE", toId).catch(() => {});
  }
}

/** Makes one Cluster of the nodes. */
async function meet(nodes: readonly ClusterNode[], ports: readonly number[]): Promise<void> {
  const masters = nodes.slice(0, MASTERS);
  await Promise.all(
    nodes.map(async ({ redis }, n) => {
      if (n < MASTERS) {
        const first = Math.ceil((n * SLOTS) / MASTERS);
        await redis.call("CLUSTER", "ADDSLOTSRANGE", first, Math.ceil(((n + 1) * SLOTS) / MASTERS) - 1);
      }
      await redis.call("CLUSTER", "SET-CONFIG-EPOCH", n + 1);
    }),
  );
  // Each meets each, which is faster than gossip.
  for (const [n, { redis }] of nodes.entries()) {
    for (const [m, { port }] of nodes.entries()) {
      if (m < n) await redis.call("CLUSTER", "MEET", "127.0.0.1", port, ports[2 * m + 1] ?? 0);
    }
  }
  await until(
    async () => (await Promise.all(nodes.map(({ redis }) => knows(redis, nodes.length)))).every(Boolean),
    {
      what: "a cluster of nodes that know each other",
    },
  );
  await Promise.all(
    nodes.slice(MASTERS).map(async ({ redis }, n) => {
      const id = await masters[n]?.id();
      await redis.call("CLUSTER", "REPLICATE", id ?? "");
    }),
  );
  await until(() => isHealthy(nodes, nodes.length), { what: "a healthy cluster" });
}

async function knows(redis: Redis, count: number): Promise<boolean> {
  const info = String(await redis.cluster("INFO"));
  return info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${count}`);
}

interface Master {
  readonly node: ClusterNode;
  readonly ranges: readonly string[];
}

/** As the majority of running nodes sees it: a node that was replaced may not know that yet. */
async function mastersOf(nodes: readonly ClusterNode[]): Promise<Master[]> {
  const found = await Promise.all(
    nodes
      .filter(({ isRunning }) => isRunning())
      .map(async (node) => {
        const lines = String(await node.redis.cluster("NODES")).split("\n");
        const own = lines.find((line) => line.includes("myself"))?.split(" ") ?? [];
        return { node, flags: own[2] ?? "", ranges: own.slice(8) };
      }),
  );
  return found.filter(({ flags, ranges }) => flags.includes("master") && ranges.length > 0);
}

function includes(ranges: readonly string[], slot: number): boolean {
  return ranges.some((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return first <= slot && slot <= last;
  });
}

async function isHealthy(nodes: readonly ClusterNode[], count: number): Promise<boolean> {
  const states = await Promise.all(
    nodes.map(async ({ redis, isRunning }) => {
      if (!isRunning() || !(await knows(redis, count))) return false;
      // Gossip tells the others of a node's role.
      const known = String(await redis.cluster("NODES")).split("\n");
      if (known.filter((line) => / (?:myself,)?slave /.test(line)).length !== count - MASTERS) return false;
      const replication = await redis.info("replication");
      return replication.includes("role:master") || replication.includes("master_link_status:up");
    }),
  );
  const masters = await mastersOf(nodes);
  return states.every(Boolean) && masters.length === MASTERS;
}
