/**
 * Checks an external Redis at start: refuses settings that lose work, and warns of settings that weaken the guarantees.
 * Limit: a provider that forbids CONFIG is trusted.
 */
import type { RedisStatus } from "../schema/status.ts";
import type { Redis } from "./connect.ts";

export interface Findings {
  /** Reasons not to start. */
  readonly refused: readonly string[];
  readonly warnings: readonly string[];
}

const fieldOf = (info: string, name: string): string | undefined =>
  new RegExp(`^${name}:(.*)$`, "m").exec(info)?.[1]?.trim();

function tooOld(info: string): string | null {
  const valkey = fieldOf(info, "valkey_version");
  const version = valkey ?? fieldOf(info, "redis_version") ?? "0";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const enough = valkey === undefined ? major >= 7 : major > 7 || (major === 7 && minor >= 2);
  return enough ? null : `version ${version} is too old; Redis 7.0 or Valkey 7.2 is needed`;
}

export async function checkServer(redis: Redis): Promise<Findings> {
  const refused: string[] = [];
  const warnings: string[] = [];
  const info = await redis.info();
  const old = tooOld(info);
  if (old !== null) refused.push(old);
  if (fieldOf(info, "cluster_enabled") === "1")
    refused.push("this is a Cluster node; Cluster is not supported yet");
  const policy = fieldOf(info, "maxmemory_policy");
  if (policy !== undefined && policy !== "noeviction") {
    refused.push(`maxmemory-policy is ${policy}; Redis may delete accepted work unless it is noeviction`);
  }
  if (fieldOf(info, "maxmemory") === "0") {
    warnings.push("maxmemory is not set: new work cannot be refused before the machine's memory is full");
  }
  if (fieldOf(info, "aof_enabled") === "0") {
    warnings.push("appendonly is off: a restart of Redis may lose accepted work");
  } else {
    const mode = (await fsyncOf(redis)) ?? "unknown";
    if (mode !== "always")
      warnings.push(`appendfsync is ${mode}: a power cut may lose the last second or more`);
  }
  return { refused, warnings };
}

/** The settings that the guarantees depend on, for the status. */
export async function serverStatus(redis: Redis): Promise<Omit<RedisStatus, "source">> {
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
async function fsyncOf(redis: Redis): Promise<string | null> {
  const answer = await redis.config("GET", "appendfsync").catch(() => null);
  return Array.isArray(answer) && answer.length > 1 ? String(answer[1]) : null;
}
