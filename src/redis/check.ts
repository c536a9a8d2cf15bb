/**
 * Checks an external Redis at start: finds out whether it is a Cluster, refuses products and settings that lose work, and
 * warns of settings that weaken the guarantees. Limit: a provider that forbids CONFIG is trusted.
 */
import type { RedisStatus } from "../schema/status.ts";
import {
  causeOf,
  connect,
  connectServer,
  databaseOf,
  errorText,
  type Redis,
  reasonOf,
  type ServerConnection,
} from "./connect.ts";
import { isUnknownGroup } from "./sentinel.ts";
import { fieldOf, isOneServer, mastersOf, replicasOf } from "./servers.ts";
import { clusterOf, nameOf, placeOf, type RedisTarget, serverOf, serverTargets } from "./target.ts";

export interface Findings {
  /** Reasons not to start. */
  readonly refused: readonly string[];
  readonly warnings: readonly string[];
}

type ServerStatus = Omit<RedisStatus, "source" | "latency_ms">;

export interface Checked extends Findings {
  /** The target, marked if its one server belongs to a Cluster. */
  readonly target: RedisTarget;
  readonly status: ServerStatus;
}

/** Products that speak Redis' protocol but cannot be used, with the reason. */
const REFUSED_PRODUCTS: readonly { readonly name: string; readonly sign: RegExp; readonly why: string }[] = [
  {
    name: "Dragonfly",
    sign: /^dragonfly_version:|^server:Dragonfly/im,
    why: "it has no append-only file, so a crash loses accepted work, and it refuses scripts that derive their keys",
  },
  {
    name: "KeyDB",
    sign: /^mvcc_depth:|^executable:.*keydb/im,
    why: "it is based on Redis 6, whose scripts cannot accept replies when memory is full",
  },
];

function productProblem(info: string): string | null {
  const product = REFUSED_PRODUCTS.find(({ sign }) => sign.test(info));
  if (product) return `this is ${product.name}, which Errand cannot use: ${product.why}. Use Redis or Valkey`;
  const valkey = fieldOf(info, "valkey_version");
  const version = valkey ?? fieldOf(info, "redis_version") ?? "0";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const enough = valkey === undefined ? major >= 7 : major > 7 || (major === 7 && minor >= 2);
  return enough ? null : `version ${version} is too old; Redis 7.0 or Valkey 7.2 is needed`;
}

/** Connects to the target and checks it. Throws an error with the reason when it does not answer. */
export async function checkTarget(given: RedisTarget): Promise<Checked> {
  const target = await recognize(given);
  const redis = connect(target, "commands");
  const reason = reasonOf(redis, target);
  try {
    const status = await serverStatus(redis);
    return { target, status, ...(await checkServers(redis)) };
  } catch (error) {
    throw new Error(reason(error));
  } finally {
    redis.disconnect();
  }
}

/** What answers is not what the URL says, so the URL is wrong. */
export class WrongTarget extends Error {
  override readonly name = "WrongTarget";
}

/** Asks the first server that answers whether it belongs to a Cluster. */
async function recognize(target: RedisTarget): Promise<RedisTarget> {
  let failure: unknown;
  for (const one of serverTargets(target)) {
    const redis = connectServer(one, "commands");
    const cause = causeOf(redis);
    const database = databaseOf(redis);
    try {
      const isClusterNode = fieldOf(await redis.info("cluster"), "cluster_enabled") === "1";
      // Some versions accept it, but the connections to the Cluster would use database 0.
      if (isClusterNode && database > 0) throw new WrongTarget(onlyOneDatabase(serverOf(one), database));
      if (clusterOf(target) === null) return { ...target, ...(isClusterNode && { isClusterNode }) };
      if (isClusterNode) return target;
      throw new WrongTarget(
        `ERRAND_REDIS_URL names several servers, but ${placeOf(one)} is not a node of a Cluster; name one server, or start each with cluster-enabled yes`,
      );
    } catch (thrown) {
      if (thrown instanceof WrongTarget) throw thrown;
      const error = cause(thrown);
      const wrong = wrongUrlText(error, one, database);
      if (wrong !== null) throw new WrongTarget(wrong);
      if (error instanceof Error && isUnknownGroup(error)) {
        throw new WrongTarget(
          `ERRAND_REDIS_URL names a group that its Sentinels do not have: ${error.message}. Correct the name after the hosts, or configure the group with 'sentinel monitor'`,
        );
      }
      failure = new Error(errorText(error, placeOf(one)));
    } finally {
      redis.disconnect();
    }
  }
  throw failure;
}

/** Checks every server. A finding that only some servers have names them. */
export async function checkServers(redis: Redis): Promise<Findings> {
  const masters = await mastersOf(redis);
  const servers = [...masters, ...replicasOf(redis)];
  const found = await Promise.all(
    servers.map((server, at) => {
      const checking = checkServer(server, !isOneServer(redis));
      // Work continues without a replica, so one that does not answer is only reported.
      return at < masters.length ? checking : checking.catch(unreachable);
    }),
  );
  const merge = (of: (findings: Findings) => readonly string[]): string[] => {
    const places = new Map<string, string[]>();
    for (const [at, findings] of found.entries()) {
      const { host = "", port = 0 } = servers[at]?.options ?? {};
      for (const text of of(findings))
        places.set(text, [...(places.get(text) ?? []), nameOf({ host, port })]);
    }
    return [...places].map(([text, at]) =>
      at.length === servers.length ? text : `${at.join(", ")}: ${text}`,
    );
  };
  return { refused: merge(({ refused }) => refused), warnings: merge(({ warnings }) => warnings) };
}

const unreachable = (): Findings => ({ refused: [], warnings: ["this replica does not respond"] });

async function checkServer(redis: ServerConnection, isInCluster: boolean): Promise<Findings> {
  return findingsOf(await redis.info(), await fsyncOf(redis), isInCluster);
}

/** `fsync`: null if it is not known. */
export function findingsOf(info: string, fsync: string | null, isInCluster = false): Findings {
  const problem = productProblem(info);
  if (problem !== null) return { refused: [problem], warnings: [] };
  const refused: string[] = [];
  const warnings: string[] = [];
  if (!isInCluster && fieldOf(info, "cluster_enabled") === "1") {
    refused.push("this is a node of a Cluster, whose nodes need hosts and ports: redis://host:7000");
  }
  const policy = fieldOf(info, "maxmemory_policy");
  if (policy !== undefined && policy !== "noeviction") {
    refused.push(`maxmemory-policy is ${policy}; Redis may delete accepted work unless it is noeviction`);
  }
  if (fieldOf(info, "maxmemory") === "0") {
    warnings.push("maxmemory is not set: new work cannot be refused before the machine's memory is full");
  }
  if (fieldOf(info, "aof_enabled") === "0") {
    warnings.push("appendonly is off: a restart of Redis may lose accepted work");
  } else if (fsync !== "always") {
    warnings.push(`appendfsync is ${fsync ?? "unknown"}: a power cut may lose the last second or more`);
  }
  return { refused, warnings };
}

/**
 * The settings that the guarantees depend on, for the status. For a Cluster: the sums, and the weakest setting of its
 * masters.
 */
export async function serverStatus(redis: Redis): Promise<ServerStatus> {
  const masters = await mastersOf(redis);
  const all = await Promise.all(masters.map(statusOfServer));
  const weakest =
    all.find(({ appendonly, appendfsync }) => !appendonly || appendfsync !== "always") ?? all[0];
  if (!weakest) throw new Error("no master is known");
  const sum = (of: (one: ServerStatus) => number) => all.reduce((total, one) => total + of(one), 0);
  return {
    ...weakest,
    ...(!isOneServer(redis) && { masters: masters.length }),
    maxmemory_bytes: all.some(({ maxmemory_bytes }) => maxmemory_bytes === 0)
      ? 0
      : sum(({ maxmemory_bytes }) => maxmemory_bytes),
    used_memory_bytes: sum(({ used_memory_bytes }) => used_memory_bytes),
  };
}

async function statusOfServer(redis: ServerConnection): Promise<ServerStatus> {
  const info = await redis.info();
  const valkey = fieldOf(info, "valkey_version");
  return {
    product: valkey === undefined ? "redis" : "valkey",
    version: valkey ?? fieldOf(info, "redis_version") ?? "unknown",
    maxmemory_policy: fieldOf(info, "maxmemory_policy") ?? null,
    maxmemory_bytes: Number(fieldOf(info, "maxmemory") ?? 0),
    used_memory_bytes: Number(fieldOf(info, "used_memory") ?? 0),
    appendonly: fieldOf(info, "aof_enabled") === "1",
    appendfsync: await fsyncOf(redis),
  };
}

/** Null where the provider hides CONFIG. */
async function fsyncOf(redis: ServerConnection): Promise<string | null> {
  const answer = await redis.config("GET", "appendfsync").catch(() => null);
  return Array.isArray(answer) && answer.length > 1 ? String(answer[1]) : null;
}

/** Explains errors that a wrong URL causes: the database, the user, the password, or a port of another service. */
const CAUSES: readonly (readonly [sign: RegExp, text: (server: string, database: number) => string])[] = [
  [
    /DB index is out of range|invalid DB index/i,
    (server, database) =>
      `Redis at ${server} has no database ${database}. Correct the number at the end of the URL.`,
  ],
  [/SELECT is not allowed in cluster mode/i, (server, database) => onlyOneDatabase(server, database)],
  [
    /^WRONGPASS/,
    (server) => `Redis at ${server} refuses the user or password (WRONGPASS). Correct them in the URL.`,
  ],
  [/^NOAUTH/, (server) => `Redis at ${server} needs a password (NOAUTH): redis://:PASSWORD@HOST.`],
  [
    /Unknown RESP type/i,
    (server) => `What answers at ${server} is no Redis. Correct the address in the URL.`,
  ],
];

const onlyOneDatabase = (server: string, database: number): string =>
  `Redis at ${server} is a node of a Cluster, which has no database ${database}. Remove the number at the end of the URL.`;

/** Null for any other error. */
function wrongUrlText(error: unknown, target: RedisTarget, database: number): string | null {
  if (!(error instanceof Error)) return null;
  const cause = CAUSES.find(([sign]) => sign.test(error.message));
  return cause ? cause[1](serverOf(target), database) : null;
}
