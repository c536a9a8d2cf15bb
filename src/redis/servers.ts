/** The servers behind a connection: one, or the nodes of a Cluster that serve slots. */
import { type Cluster, Redis as OneServer } from "ioredis";
import type { Redis, ServerConnection } from "./connect.ts";
import { nameOf } from "./target.ts";

const SLOTS = 16_384;

export const isOneServer = (redis: Redis): redis is ServerConnection => redis instanceof OneServer;

/** The servers that accept writes. A master that does not answer is left out. */
export async function mastersOf(redis: Redis): Promise<readonly ServerConnection[]> {
  if (isOneServer(redis)) return [redis];
  // Before the first answer, no node is known.
  if (redis.status !== "ready") await redis.ping();
  return redis.nodes("master");
}

/** The same, but throws if a master does not answer, or a slot has none: together, they have all keys. */
export async function allMastersOf(redis: Redis): Promise<readonly ServerConnection[]> {
  const masters = await mastersOf(redis);
  if (!isOneServer(redis)) requireAllSlots(redis, masters);
  return masters;
}

function requireAllSlots({ slots }: Cluster, masters: readonly ServerConnection[]): void {
  const names = masters.map(({ options: { host = "", port = 0 } }) => nameOf({ host, port }));
  const connected = new Set(names);
  for (let slot = 0; slot < SLOTS; slot += 1) {
    const name = slots[slot]?.[0];
    if (name === undefined) throw new Error(`slot ${slot} of the Cluster has no master`);
    if (!connected.has(name)) throw new Error(`the master at ${name} of the Cluster does not respond`);
  }
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
