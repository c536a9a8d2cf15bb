/**
 * Vitest's global setup: one private Redis for the whole run, found as `errand serve` finds it, which ends with
 * vitest; with ERRAND_TEST_CLUSTER also a Cluster. Limit: all files share it, so each test needs keys of its own.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { findRedisServer, type RedisServerBinary } from "../../src/redis/embedded/find-server.ts";
import type { LockedProcess } from "../../src/redis/embedded/locked-process.ts";
import { launch, probe, terminate } from "../../src/redis/embedded/server.ts";
import { type RedisCluster, startRedisCluster } from "./redis-cluster.ts";
import { until } from "./until.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The path of its unix socket; no password, no TCP port, nothing on disk. */
    redisSocket: string;
    /** The nodes of the run's Cluster, as for ERRAND_REDIS_URL; empty without one (on-cluster.ts). */
    redisCluster: string;
  }
}

export function testRedisBinary(): Promise<RedisServerBinary> {
  return findRedisServer({
    configured: process.env.ERRAND_REDIS_BIN,
    path: process.env.PATH ?? "",
    cacheDir: join(homedir(), ".cache", "errand"),
    announce: (line) => process.stderr.write(`${line}\n`),
  });
}

let directory: string | undefined;
let server: LockedProcess | undefined;
let cluster: RedisCluster | undefined;

export async function setup(project: TestProject): Promise<void> {
  const binary = await testRedisBinary();
  directory = await mkdtemp(join(tmpdir(), "errand-test-"));
  const socket = join(directory, "redis.sock");
  const config = [
    `dir "${directory}"`,
    "appendonly no",
    'save ""',
    "maxmemory-policy noeviction",
    "databases 10000",
    `unixsocket "${socket}"`,
  ];
  const started = await launch(binary, `${config.join("\n")}\n`, join(directory, "lock"));
  server = started;
  await until(async () => started.exit() !== undefined || (await probe(socket, "none")).state !== "absent", {
    what: "the test Redis",
  });
  const exit = started.exit();
  if (exit !== undefined) throw new Error(`The test Redis ended at once (${exit.code}): ${exit.stderr}`);
  project.provide("redisSocket", socket);
  if (process.env.ERRAND_TEST_CLUSTER) cluster = await startRedisCluster({ binary });
  project.provide("redisCluster", cluster?.url ?? "");
}

export async function teardown(): Promise<void> {
  await cluster?.stop();
  if (server !== undefined) await terminate(server);
  if (directory !== undefined) await rm(directory, { recursive: true, force: true });
}
