import { expect, test } from "vitest";
import { checkServers, checkTarget, findingsOf } from "../../src/redis/check.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { startServer } from "../support/redis-pair.ts";

test("a Redis that may fill the machine, or lose data, causes a warning; one that may not causes none", async () => {
  const { redis } = await startOwnRedis();
  await redis.config("SET", "maxmemory", "64mb");
  expect(await checkServers(redis)).toEqual({ refused: [], warnings: [] });
  await redis.config("SET", "maxmemory", "0");
  const { refused, warnings } = await checkServers(redis);
  expect(refused).toEqual([]);
  expect(warnings).toEqual([expect.stringContaining("maxmemory is not set")]);
  await redis.config("SET", "appendfsync", "everysec");
  expect((await checkServers(redis)).warnings).toEqual([
    expect.stringContaining("maxmemory"),
    expect.stringContaining("appendfsync is everysec"),
  ]);
  await redis.config("SET", "maxmemory-policy", "allkeys-lru");
  expect((await checkServers(redis)).refused).toEqual([expect.stringContaining("allkeys-lru")]);
});

/** The lines of INFO that tell the products apart. */
const INFO = {
  "Redis 7": ["redis_version:7.0.15", "redis_mode:standalone", "executable:/usr/bin/redis-server"],
  "Redis 8": ["redis_version:8.2.1", "redis_mode:standalone", "executable:/usr/local/bin/redis-server"],
  "Valkey 8": ["redis_version:7.2.4", "server_name:valkey", "valkey_version:8.1.3", "server_mode:standalone"],
  "Valkey 7.2": ["redis_version:7.2.4", "server_name:valkey", "valkey_version:7.2.11"],
};
const REFUSED = {
  "version 6.2.14 is too old": ["redis_version:6.2.14"],
  Dragonfly: ["redis_version:7.4.0", "dragonfly_version:df-v1.36.0", "executable:/usr/bin/dragonfly"],
  KeyDB: ["redis_version:6.3.4", "executable:/data/keydb-server", "", "# KeyDB", "mvcc_depth:0"],
};
const sound = ["maxmemory:1000", "maxmemory_policy:noeviction", "aof_enabled:1", "cluster_enabled:0"];
const infoOf = (lines: readonly string[]): string => ["# Server", ...lines, ...sound, ""].join("\r\n");

test.each(Object.entries(INFO))("%s is accepted", (_name, lines) => {
  expect(findingsOf(infoOf(lines), "always")).toEqual({ refused: [], warnings: [] });
});

test.each(Object.entries(REFUSED))("refused: %s", (name, lines) => {
  const { refused, warnings } = findingsOf(infoOf(lines), "always");
  expect([refused, warnings]).toEqual([[expect.stringContaining(name)], []]);
  // And what to use.
  expect(refused[0]).toMatch(/Redis (?:7\.0 )?or Valkey/);
});

test("several servers that are not a Cluster are refused, and none that answers is named", async () => {
  const { port } = await startServer();
  await expect(checkTarget({ url: `redis://127.0.0.1:${port},127.0.0.1:1` })).rejects.toThrow(
    `127.0.0.1:${port} is not a node of a Cluster`,
  );
  await expect(checkTarget({ url: "redis://127.0.0.1:1,127.0.0.1:2" })).rejects.toThrow("ECONNREFUSED");
});
