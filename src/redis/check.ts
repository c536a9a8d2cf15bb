/**
 * Looks over an external Redis at start: what would lose work is refused, what weakens the promise is said.
 * Limit: a provider that hides CONFIG is believed.
 */
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
    refused.push(`maxmemory-policy is ${policy}; with anything but noeviction accepted work can vanish`);
  }
  if (fieldOf(info, "aof_enabled") === "0") {
    warnings.push("appendonly is off: a restart of Redis may lose accepted work");
  } else {
    const fsync = await redis.config("GET", "appendfsync").catch(() => null);
    const mode = Array.isArray(fsync) ? String(fsync[1]) : "unknown";
    if (mode !== "always")
      warnings.push(`appendfsync is ${mode}: a power cut may lose the last second or more`);
  }
  return { refused, warnings };
}
