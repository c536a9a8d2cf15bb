/**
 * `npm run prove -- cluster` runs tests on a Redis Cluster instead of the run's one Redis. Limit: a Cluster has one
 * database, so that run has one worker, and each test begins with an empty Cluster.
 */
import { Cluster, Redis } from "ioredis";
import { inject, test } from "vitest";
import { clusterOf } from "../../src/redis/target.ts";

/** Enough that each master has some. */
const SHARDS = 4;

export const isOnCluster = (): boolean => inject("redisCluster") !== "";

/** The number of shards of a test's broker. */
export const testShards = (): number => (isOnCluster() ? SHARDS : 1);

/** Runs only on one Redis; says why. */
export const onOneRedis = (_why: string) => (process.env.ERRAND_TEST_CLUSTER ? test.skip : test);

const nodesOfRun = () => clusterOf({ url: inject("redisCluster") })?.nodes ?? [];

/** A connection to each node of the run's Cluster, also to those that a client does not know of yet. */
export const clusterServers = (): Redis[] => nodesOfRun().map(({ host, port }) => new Redis({ host, port }));

/** A client of the run's Cluster. */
export function clusterClient(): Cluster {
  const client = new Cluster([...nodesOfRun()], { slotsRefreshInterval: 1_000 });
  client.on("error", () => {});
  return client;
}

export async function flushCluster(): Promise<void> {
  const client = clusterClient();
  // Waits for the nodes.
  await client.ping();
  await Promise.all(client.nodes("master").map((node) => node.flushall()));
  client.disconnect();
}
