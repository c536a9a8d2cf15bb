import { expect, test } from "vitest";
import { checkServer } from "../../src/redis/check.ts";
import { startOwnRedis } from "../support/own-redis.ts";

test("a Redis that may fill the machine, or lose data, causes a warning; one that may not causes none", async () => {
  const { redis } = await startOwnRedis();
  await redis.config("SET", "maxmemory", "64mb");
  expect(await checkServer(redis)).toEqual({ refused: [], warnings: [] });
  await redis.config("SET", "maxmemory", "0");
  const { refused, warnings } = await checkServer(redis);
  expect(refused).toEqual([]);
  expect(warnings).toEqual([expect.stringContaining("maxmemory is not set")]);
  await redis.config("SET", "appendfsync", "everysec");
  expect((await checkServer(redis)).warnings).toEqual([
    expect.stringContaining("maxmemory"),
    expect.stringContaining("appendfsync is everysec"),
  ]);
  await redis.config("SET", "maxmemory-policy", "allkeys-lru");
  expect((await checkServer(redis)).refused).toEqual([expect.stringContaining("allkeys-lru")]);
});
