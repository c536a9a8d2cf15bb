/** All keys of Errand in a Redis, which others may use, too. Limit: keys that are written meanwhile may be missed. */
import type { Redis, ServerConnection } from "./connect.ts";
import { isOwnKey } from "./keys.ts";
import { allMastersOf } from "./servers.ts";

const SCANNED = 1_000;

export interface OwnKeys {
  /** The server that has them. */
  readonly server: ServerConnection;
  readonly names: readonly string[];
}

/** In portions; of a Cluster, the keys of each master; throws if one does not respond. `pattern` is one of SCAN. */
export async function* ownKeys(redis: Redis, pattern = "*"): AsyncGenerator<OwnKeys> {
  for (const server of await allMastersOf(redis)) {
    let cursor = "0";
    do {
      const [next, found] = await server.scan(cursor, "MATCH", pattern, "COUNT", SCANNED);
      cursor = next;
      const names = found.filter(isOwnKey);
      if (names.length > 0) yield { server, names };
    } while (cursor !== "0");
  }
}

/** One command for each key, because those of a Cluster may be in several slots. */
export async function unlinkAll({ server, names }: OwnKeys): Promise<void> {
  const pipeline = server.pipeline();
  for (const name of names) pipeline.unlink(name);
  for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error;
}
