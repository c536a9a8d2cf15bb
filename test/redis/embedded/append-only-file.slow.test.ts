/**
 * How a damaged append-only file affects a start, with the private Redis. (An external one reports it in its own
 * log.)
 */
import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { describe, expect, onTestFinished, test } from "vitest";
import { appendOnlyCheck } from "../../../src/cli/doctor/local.ts";
import { preflight } from "../../../src/offline/preflight.ts";
import { cutPartialCommand } from "../../../src/redis/embedded/append-only-file.ts";
import { type EmbeddedRedis, startEmbedded } from "../../../src/redis/embedded/embedded.ts";
import { readLoad } from "../../../src/redis/embedded/log.ts";
import { testRedisBinary } from "../../support/redis-server.ts";
import { until } from "../../support/until.ts";

async function setup() {
  const dataDir = await mkdtemp(join(tmpdir(), "errand-aof-"));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const logged: string[] = [];
  const start = () =>
    startEmbedded({
      dataDir,
      fsync: "always",
      binary: testRedisBinary,
      log: (level, message, fields) => logged.push(`${level} ${message} ${JSON.stringify(fields)}`),
    });
  const keys = async ({ socket, password }: EmbeddedRedis, work: (redis: Redis) => Promise<unknown>) => {
    const redis = new Redis({ path: socket, password });
    const answer = await work(redis);
    redis.disconnect();
    return answer;
  };
  const first = await start();
  await keys(first, async (redis) => {
    for (let n = 0; n < 100; n += 1) await redis.set(`key:${n}`, "x".repeat(100));
  });
  await first.stop();
  const folder = join(dataDir, "redis", "appendonlydir");
  const name = (await readdir(folder)).find((one) => one.endsWith(".incr.aof")) ?? "";
  /** What `errand doctor` reports about the file. */
  const doctor = async () => {
    const load = await preflight({}).lastLoad(dataDir);
    return load === null ? null : appendOnlyCheck(load, dataDir);
  };
  return { start, keys, logged, doctor, file: join(folder, name) };
}

test("a file whose end is cut off is loaded, and the log says what was dropped", async () => {
  const { start, keys, logged, doctor, file } = await setup();
  const { length } = await readFile(file);
  await truncate(file, length - 20);
  const redis = await start();
  onTestFinished(() => redis.stop());
  expect(await keys(redis, (one) => one.dbsize())).toBe(99);
  const said = await until(() => logged.find((line) => line.includes("ended in the middle of a write")));
  expect(said).toMatch(/^warn .*"offset":\d+/);
  expect(await doctor()).toMatchObject({
    status: "warn",
    detail: expect.stringMatching(/at byte \d+ of .*\.aof/),
  });
  await redis.stop();
  const again = await start();
  onTestFinished(() => again.stop());
  // The next start loads all of it.
  expect(await doctor()).toMatchObject({ check: "append_only", status: "ok" });
});

describe("a file that ends within a transaction", () => {
  const transaction = `for n = 1, 3 do redis.call("SET", "half:" .. n, "MULTI") end`;
  const keysOf = (redis: Redis) => redis.keys("half:*").then((names) => names.sort());

  /** A data directory whose file ends `missing` bytes before the end of the transaction. */
  async function cut(missing: number) {
    const { start, keys, logged, file } = await setup();
    const before = await start();
    await keys(before, (redis) => redis.eval(transaction, 0));
    await before.stop();
    const { length } = await readFile(file);
    await truncate(file, length - missing);
    return { start, keys, logged, file };
  }

  const EXEC = "*1\r\n$4\r\nEXEC\r\n".length;
  const SET = "*3\r\n$3\r\nSET\r\n$6\r\nhalf:1\r\n$5\r\nMULTI\r\n".length;
  test.each([
    ["within its EXEC", 3],
    ["before its EXEC", EXEC],
    ["within its third command", EXEC + 4],
    ["between its second and third command", EXEC + SET],
    ["within its first command", EXEC + 2 * SET + 9],
    ["within its MULTI", EXEC + 3 * SET + 5],
  ])("%s: it stays undone, and what is written later survives the next start", async (_, missing) => {
    const { start, keys } = await cut(missing);
    for (let round = 1; round <= 2; round += 1) {
      const redis = await start();
      expect(await keys(redis, keysOf)).toEqual([]);
      expect(await keys(redis, (one) => one.keys("later:*"))).toHaveLength(round - 1);
      await keys(redis, (one) => one.set(`later:${round}`, "x"));
      await redis.stop();
    }
  });

  test("and the log says so", async () => {
    const { start, logged } = await cut(EXEC + 4);
    const redis = await start();
    await until(() => logged.find((line) => line.includes("ended in the middle of a write")));
    await redis.stop();
  });

  test("damage before its end is left to Redis, which refuses to start", async () => {
    const { start, file } = await cut(EXEC + 4);
    const bytes = await readFile(file);
    bytes[bytes.indexOf("*3", Math.floor(bytes.length / 2))] = 0x2b;
    await writeFile(file, bytes);
    await expect(start()).rejects.toThrow(/append-only file is damaged/);
    expect(await readFile(file)).toHaveLength(bytes.length);
  });
});

test("a file is read alike, however its bytes are divided into reads", async () => {
  const directory = await mkdtemp(join(tmpdir(), "errand-aof-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const folder = join(directory, "appendonlydir");
  await mkdir(folder);
  await writeFile(join(folder, "appendonly.aof.manifest"), "file incr.aof seq 1 type i\n");
  const complete = "#TS:1700000000\r\n*2\r\n$3\r\nDEL\r\n$1\r\na\r\n*1\r\n$5\r\nMULTI\r\n";
  const partial = "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$12\r\n\r\nMULTI";
  for (const chunkBytes of [1, 2, 3, 7, 64]) {
    await writeFile(join(folder, "incr.aof"), complete + partial);
    await cutPartialCommand(directory, chunkBytes);
    expect(await readFile(join(folder, "incr.aof"), "utf8")).toBe(complete);
  }
});

test("a file that is damaged in the middle prevents the start, and the error says what to do", async () => {
  const { start, doctor, file } = await setup();
  const bytes = await readFile(file);
  // The first byte of a command.
  bytes[bytes.indexOf("*3", Math.floor(bytes.length / 2))] = 0x2b;
  await writeFile(file, bytes);
  await expect(start()).rejects.toThrow(/append-only file is damaged .*\.incr\.aof.*redis-check-aof --fix/s);
  expect(await doctor()).toMatchObject({
    status: "fail",
    detail: expect.stringContaining(".incr.aof"),
    remedy: expect.stringContaining("redis-check-aof --fix"),
  });
});

test("an ordinary start has nothing to report", async () => {
  const { start, logged } = await setup();
  const redis = await start();
  await redis.stop();
  expect(logged.filter((line) => line.startsWith("warn"))).toEqual([]);
  expect(readLoad("* DB loaded from append only file: 0.001 seconds")).toEqual({
    truncated: null,
    damaged: null,
  });
});
