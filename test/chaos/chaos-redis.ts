/** What a run knows of its Redis: one process, or the nodes of a Cluster. */
import type { Redis } from "../../src/redis/connect.ts";

/** One process, which the nemesis may kill, suspend and restart on its data. */
export interface RedisNode {
  readonly name: string;
  readonly isRunning: boolean;
  start(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Sends this signal; resolves when the process is gone. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
}

export interface ChaosRedis {
  readonly nodes: readonly RedisNode[];
  /** Connected directly, not through a bad link. */
  readonly client: Redis;
  /** Where a bad link leads; null for a Cluster, whose nodes name their own addresses. */
  readonly socket: string | null;
  /** ERRAND_REDIS_URL without a bad link. */
  readonly url: string;
  start(): Promise<void>;
  /** The names of all keys that match. */
  scan(pattern: string): Promise<Set<string>>;
  close(): Promise<void>;
}

/** As of {@link ChaosRedis.scan}, of one server. */
export async function scanServer(
  server: { scan(...args: [string, "MATCH", string, "COUNT", number]): Promise<[string, string[]]> },
  pattern: string,
): Promise<Set<string>> {
  const names = new Set<string>();
  let cursor = "0";
  do {
    const [next, found] = await server.scan(cursor, "MATCH", pattern, "COUNT", 1_000);
    for (const name of found) names.add(name);
    cursor = next;
  } while (cursor !== "0");
  return names;
}
