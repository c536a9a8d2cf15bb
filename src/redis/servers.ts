/** The servers behind a connection: one, or the nodes of a Cluster that serve slots. */
import { Redis as OneServer } from "ioredis";
import type { Redis, ServerConnection } from "./connect.ts";

export const isOneServer = (redis: Redis): redis is ServerConnection => redis instanceof OneServer;

/** The servers that accept writes. A master that does not answer is left out. */
export async function mastersOf(redis: Redis): Promise<readonly ServerConnection[]> {
  if (isOneServer(redis)) return [redis];
  // Before the first answer, no node is known.
  if (redis.status !== "ready") await redis.ping();
  return redis.nodes("master");
}

/** The replicas of a Cluster; a single server's are not known. */
export const replicasOf = (redis: Redis): readonly ServerConnection[] =>
  isOneServer(redis) ? [] : redis.nodes("slave");

/** An answer of INFO by field. */
export const fieldOf = (info: string, name: string): string | undefined =>
  info
    .split("\n")
    .find((line) => line.startsWith(`${name}:`))
    ?.slice(name.length + 1)
    .trim();
