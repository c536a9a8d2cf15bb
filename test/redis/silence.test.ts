/** Real Redis behind a link that fails; the limit is short, so that nothing waits long. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, inject, onTestFinished, test } from "vitest";
import { connect } from "../../src/redis/connect.ts";
import { openBadLink } from "../support/bad-link.ts";
import { allowStalls } from "../support/stalls.ts";
import { until } from "../support/until.ts";

/** Longer than a busy machine keeps Redis off its cores. */
const LIMIT_MS = 200;

async function connectThroughLink(limitMs = LIMIT_MS) {
  const link = await openBadLink(inject("redisSocket"));
  onTestFinished(link.close);
  const redis = connect({ url: `redis://127.0.0.1:${link.port}` }, "commands", undefined, limitMs);
  onTestFinished(() => redis.disconnect());
  redis.on("error", () => {});
  // On a busy machine, the first attempts may take longer than the limit.
  await until(async () => (await redis.ping()) === "PONG");
  let closed = 0;
  redis.on("close", () => {
    closed += 1;
  });
  return { link, redis, closed: () => closed };
}

test("a stall of this process is not a silence of Redis", async () => {
  const { redis, closed } = await connectThroughLink();
  const answer = redis.ping();
  // Blocks the event loop while the answer arrives.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 * LIMIT_MS);
  await expect(answer).resolves.toBe("PONG");
  expect(closed()).toBe(0);
});

test("a Redis that does not answer is reconnected to, and the command fails", async () => {
  const { link, redis, closed } = await connectThroughLink();
  await link.fault("swallow-answers");
  await expect(redis.ping()).rejects.toThrow();
  expect(closed()).toBe(1);
  await link.heal();
  await until(async () => (await redis.ping().catch(() => null)) === "PONG");
});

test("a connection that was closed and opened again has the limit, too", async () => {
  const { link, redis, closed } = await connectThroughLink();
  const ended = new Promise((resolve) => redis.once("end", resolve));
  redis.disconnect();
  await ended;
  await redis.connect();
  await until(async () => (await redis.ping()) === "PONG");
  const before = closed();
  await link.fault("swallow-answers");
  await expect(redis.ping()).rejects.toThrow();
  expect(closed()).toBe(before + 1);
});

test("Redis has the whole limit to answer, whenever the command is sent", async () => {
  const limitMs = 400;
  const times = [0, 10, 20, 30, 40].map(async (laterMs) => {
    const { link, redis } = await connectThroughLink(limitMs);
    await link.fault("swallow-answers");
    // Longer than a check, so that the answer to the first ping does not count.
    await sleep(100 + laterMs);
    const sentAt = performance.now();
    await expect(redis.ping()).rejects.toThrow();
    return performance.now() - sentAt;
  });
  // The clock of timers counts whole milliseconds.
  expect(Math.min(...(await Promise.all(times)))).toBeGreaterThan(limitMs - 5);
});

test("a handshake that Redis does not answer is given up as soon as a command", async () => {
  const withStalls = allowStalls();
  const { link, redis } = await connectThroughLink(600);
  await link.fault("swallow-answers");
  const closedAt: number[] = [];
  redis.on("close", () => closedAt.push(performance.now()));
  const sentAt = performance.now();
  await expect(redis.ping()).rejects.toThrow();
  await until(() => closedAt.length === 2);
  const [first = 0, second = 0] = closedAt;
  expect(second - first).toBeLessThan(withStalls(2 * (first - sentAt)));
});

test("a connection without commands may be silent", async () => {
  const { closed } = await connectThroughLink();
  const begin = performance.now();
  await until(() => performance.now() - begin > 3 * LIMIT_MS);
  expect(closed()).toBe(0);
});

test("a command that finds no connection does not wait for the next attempt", async () => {
  const { link, redis } = await connectThroughLink();
  await link.fault("refuse");
  const errors = new Set<string>();
  await until(async () => {
    errors.add(await redis.ping().catch((error: unknown) => String(error)));
    return errors.has("Error: Command timed out");
  });
});
