import { expect, test } from "vitest";
import { startCommand } from "../../src/cli/show/transfer.ts";

test.each([
  ["redis://host:6379", "'errand serve --redis-url redis://host:6379'"],
  ["redis://:s3cret@host:6379", "'errand serve' with the same URL in ERRAND_REDIS_URL"],
  ["redis://:s3cret@one:6379,two:6379", "'errand serve' with the same URL in ERRAND_REDIS_URL"],
  [
    "redis+sentinel://one,two/main?sentinel_password=s3cret",
    "'errand serve' with the same URL in ERRAND_REDIS_URL",
  ],
  ["unix:/run/redis.sock?password=s3cret", "'errand serve' with the same URL in ERRAND_REDIS_URL"],
])("%s: %s", (redisUrl, command) => {
  expect(startCommand({ redisUrl })).toBe(command);
});
