import { expect, test } from "vitest";
import { startCommand } from "../../src/cli/show/start-command.ts";

test.each([
  ["redis://host:6379", "'errand serve --redis-url redis://host:6379'"],
  ["redis://:s3cret@host:6379", "'errand serve --redis-url URL' with the same URL"],
  ["redis://:s3cret@one:6379,two:6379", "'errand serve --redis-url URL' with the same URL"],
  [
    "redis+sentinel://one,two/main?sentinel_password=s3cret",
    "'errand serve --redis-url URL' with the same URL",
  ],
  ["unix:/run/redis.sock?password=s3cret", "'errand serve --redis-url URL' with the same URL"],
])("%s: %s", (redisUrl, command) => {
  expect(startCommand({ redisUrl })).toBe(command);
});
