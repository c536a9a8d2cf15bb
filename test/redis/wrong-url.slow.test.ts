/** A URL that leads to no usable Redis: nothing is written, and the message says what to correct. */
import { once } from "node:events";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { checkTarget, WrongTarget } from "../../src/redis/check.ts";
import { connectServer, type RedisTarget } from "../../src/redis/connect.ts";
import { problemOf } from "../../src/redis/target.ts";
import { run } from "../cli/fake-host.ts";
import { freshDir } from "../support/program.ts";
import { startServer } from "../support/redis-pair.ts";

const SOUND = ["appendonly yes", "appendfsync always"];
const refusalOf = (target: RedisTarget): Promise<unknown> =>
  checkTarget(target).then(
    () => null,
    (error: unknown) => error,
  );
const cli = (env: Record<string, string>, ...argv: string[]) =>
  run(argv, { env: { dataDir: "/nonexistent" }, childEnv: { PATH: process.env.PATH, ...env } });

test("a database that does not exist is refused by every command, and nothing is written to database 0", async () => {
  const { port, redis } = await startServer(SOUND);
  const sound = `redis://127.0.0.1:${port}`;
  const wrong = `${sound}/99`;
  const text = `Redis at 127.0.0.1:${port} has no database 99. Correct the number at the end of the URL.`;
  expect(await refusalOf({ url: wrong })).toEqual(new WrongTarget(text));
  const file = join(freshDir(), "errand.backup");
  expect(await cli({}, "backup", file, "--redis-url", sound)).toMatchObject({ code: 0 });
  for (const [env, ...argv] of [
    [{}, "restore", file, "--redis-url", wrong],
    [{}, "backup", `${file}.new`, "--redis-url", wrong],
    [{ ERRAND_REDIS_URL: sound }, "migrate", "--to", wrong],
    [{ ERRAND_REDIS_URL: wrong }, "migrate", "--to", sound],
  ] as const) {
    const { code, stderr } = await cli(env, ...argv);
    expect([argv[0], code, stderr]).toEqual([argv[0], 78, expect.stringContaining(text)]);
  }
  expect(await redis.dbsize()).toBe(0);
});

test("a database that is gone after a reconnect receives no command, and database 0 does not either", async () => {
  const { socket, redis } = await startServer();
  const dir = dirname(socket);
  const target = { socket, db: 9 };
  const used = connectServer(target, "commands");
  const errors: string[] = [];
  used.on("error", ({ message }) => errors.push(message));
  await used.set("some", "1");
  const closed = once(redis, "close");
  redis.call("SHUTDOWN", "NOSAVE").catch(() => {});
  await closed;
  // Otherwise it would send SHUTDOWN again, to the next server.
  redis.disconnect();
  const again = await startServer(["databases 4"], dir);
  await expect.poll(() => errors.join()).toContain("DB index is out of range");
  await expect(used.set("other", "1")).rejects.toThrow();
  used.disconnect();
  expect(await again.redis.dbsize()).toBe(0);
});

test("a node of a Cluster has only database 0", async () => {
  const { port } = await startServer(["cluster-enabled yes"]);
  const refusal = await refusalOf({ url: `redis://127.0.0.1:${port}/1` });
  expect(refusal).toBeInstanceOf(WrongTarget);
  expect(String(refusal)).toContain(
    `127.0.0.1:${port} is a node of a Cluster, which has no database 1. Remove the number`,
  );
});

test("a database that is not a number is refused, because the driver would take 0", () => {
  for (const url of ["redis://h/prod", "redis://h/1/2", "redis://h?db=x"]) {
    expect(problemOf(url)).toContain("not a number");
  }
  for (const url of ["redis://h", "redis://h/", "redis://h/15", "redis://h?db=2"]) {
    expect(problemOf(url)).toBe(null);
  }
});

test("a wrong password, a missing one, and the port of another service are named", async () => {
  const { port, redis } = await startServer();
  await redis.config("SET", "requirepass", "secret");
  const place = `127.0.0.1:${port}`;
  expect(String(await refusalOf({ url: `redis://:wrong@${place}` }))).toContain(
    `Redis at ${place} refuses the user or password (WRONGPASS).`,
  );
  expect(String(await refusalOf({ url: `redis://${place}` }))).toContain(
    `Redis at ${place} needs a password (NOAUTH)`,
  );
  const web = createServer((_, response) => response.end("<html></html>")).listen(0, "127.0.0.1");
  onTestFinished(() => void web.close());
  await once(web, "listening");
  const address = web.address();
  const webPort = typeof address === "object" ? address?.port : undefined;
  expect(String(await refusalOf({ url: `redis://127.0.0.1:${webPort}` }))).toContain("is no Redis");
});

test.each([
  ["http://127.0.0.1:1", 78],
  ["redis://127.0.0.1:1", 75],
])("a wrong address is named by the option that it comes from: %s", async (wrong, code) => {
  const file = join(freshDir(), "errand.backup");
  const source = { ERRAND_REDIS_URL: `redis://127.0.0.1:${(await startServer(SOUND)).port}` };
  for (const [env, name, ...argv] of [
    [{}, "--redis-url", "backup", file, "--redis-url", wrong],
    [{}, "--redis-url", "migrate", "--redis-url", wrong, "--shards", "2"],
    [source, "--to", "migrate", "--to", wrong],
    [{ ERRAND_REDIS_URL: wrong }, "ERRAND_REDIS_URL", "backup", file],
  ] as const) {
    const answer = await cli(env, ...argv);
    const others = ["--redis-url", "--to", "ERRAND_REDIS_URL"].filter((one) => one !== name);
    expect([argv, answer.code, answer.stderr]).toEqual([argv, code, expect.stringContaining(name)]);
    for (const other of others) expect(answer.stderr).not.toContain(other);
  }
});
