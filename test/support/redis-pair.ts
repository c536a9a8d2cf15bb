/** A master and its replica, for fail-over. Limit: no password; they communicate over loopback. */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { launch, terminate } from "../../src/redis/embedded/server.ts";
import { testRedisBinary } from "./redis-server.ts";
import { until } from "./until.ts";

export interface Server {
  readonly socket: string;
  readonly port: number;
  readonly redis: Redis;
}

/** A Redis on a unix socket and a loopback port, with its data on tmpfs or disk. */
export async function startServer(more: readonly string[] = [], directory?: string): Promise<Server> {
  const dir = directory ?? (await mkdtemp(join(tmpdir(), "errand-redis-")));
  const socket = join(dir, "redis.sock");
  const config = [
    `dir "${dir}"`,
    'save ""',
    "maxmemory-policy noeviction",
    ...more,
    `unixsocket "${socket}"`,
  ];
  const child = await launch(await testRedisBinary(), `${config.join("\n")}\n`, join(dir, "lock"));
  const redis = new Redis({ path: socket, maxRetriesPerRequest: null });
  redis.on("error", () => {});
  onTestFinished(async () => {
    redis.disconnect();
    await terminate(child);
    if (directory === undefined) await rm(dir, { recursive: true, force: true });
  });
  await until(async () => (await redis.ping()) === "PONG", { what: "a Redis" });
  const port = await freePort();
  await redis.config("SET", "port", String(port));
  return { socket, port, redis };
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

export interface Pair {
  readonly master: Server;
  readonly replica: Server;
  /** Makes the replica the master, and the master its replica. */
  readonly failOver: () => Promise<void>;
}

const isLinked = async ({ redis }: Server): Promise<boolean> =>
  (await redis.info("replication")).includes("master_link_status:up");

export async function startPair(): Promise<Pair> {
  const [master, replica] = await Promise.all([startServer(), startServer()]);
  await master.redis.config("SET", "repl-diskless-sync-delay", "0");
  await replica.redis.config("SET", "repl-diskless-sync-delay", "0");
  await replica.redis.replicaof("127.0.0.1", master.port);
  await until(() => isLinked(replica), { what: "the replica's link" });
  return {
    master,
    replica,
    async failOver() {
      // Everything acknowledged is on the replica: losses of asynchronous replication are not under test.
      await until(async () => {
        const offset = (info: string, name: string) => new RegExp(`${name}:(\\d+)`).exec(info)?.[1];
        const ahead = offset(await master.redis.info("replication"), "master_repl_offset");
        return ahead === offset(await replica.redis.info("replication"), "slave_repl_offset");
      });
      await replica.redis.replicaof("NO", "ONE");
      await master.redis.replicaof("127.0.0.1", replica.port);
    },
  };
}
