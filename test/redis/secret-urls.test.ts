/** No message shows a part of ERRAND_REDIS_URL that may be a password, whatever its form and whatever fails. */
import { expect, test } from "vitest";
import { ConfigError, readConfig } from "../../src/config.ts";
import { preflight } from "../../src/offline/preflight.ts";
import { checkTarget } from "../../src/redis/check.ts";
import { connect } from "../../src/redis/connect.ts";
import { placeOf, serverOf } from "../../src/redis/target.ts";
import { run } from "../cli/fake-host.ts";
import { startServer } from "../support/redis-pair.ts";

const SECRET = "hush-hush";

/** All that the broker and its programs say of a URL. */
async function textsOf(url: string): Promise<string> {
  const refused = async () => {
    readConfig({ ERRAND_REDIS_URL: url });
    await checkTarget({ url });
  };
  const [error, doctor, backup] = await Promise.all([
    refused().catch((thrown: unknown) => thrown),
    preflight({ ERRAND_REDIS_URL: url }).redis(),
    run(["backup", "/nonexistent/x", "--redis-url", url], { childEnv: { PATH: process.env.PATH } }),
  ]);
  const problems = error instanceof ConfigError ? error.problems : [placeOf({ url }), serverOf({ url })];
  return [String(error), ...problems, JSON.stringify(doctor), backup.stderr, backup.stdout].join("\n");
}

/** Refused before anything connects: the password has a character that ends it. */
test.each([
  `unix://:${SECRET}/x@/run/redis.sock`,
  `unix://${SECRET}@/run/redis.sock`,
  `unix://:${SECRET}/run/redis.sock`,
  `unix:ann:${SECRET}@/run/redis.sock`,
  `unix:///run/redis.sock?password=${SECRET}`,
  `unix:///run/redis.sock?${SECRET}`,
  `unix:///run/redis.sock?db=${SECRET}`,
  `unix://:50%${SECRET}@/run/redis.sock`,
  `redis://ann:12/${SECRET}@127.0.0.1`,
  `redis://ann:12#${SECRET}@127.0.0.1`,
  `redis://ann:12?${SECRET}@127.0.0.1`,
  `redis://${SECRET}:12#x@127.0.0.1`,
  `redis://:50%${SECRET}@127.0.0.1`,
  `redis://ann:12/${SECRET}@127.0.0.1:7000,127.0.0.1:7001`,
  `redis://ann:12#${SECRET}@127.0.0.1:7000,127.0.0.1:7001`,
  `redis+sentinel://ann:12/${SECRET}@127.0.0.1`,
  `redis+sentinel://ann:12#${SECRET}@127.0.0.1/main`,
  `redis+sentinel://ann:12?${SECRET}@127.0.0.1/main`,
  `http://:${SECRET}@127.0.0.1`,
  `:${SECRET}@127.0.0.1`,
])("%s is refused without its password", async (url) => {
  expect(() => readConfig({ ERRAND_REDIS_URL: url })).toThrow(ConfigError);
  expect(await textsOf(url)).not.toContain(SECRET);
});

test("no failure of a sound URL shows its password", async () => {
  const { socket, port, redis } = await startServer();
  await redis.config("SET", "requirepass", "another");
  const urls = [
    // The server refuses the password, or there is none.
    `unix://:${SECRET}@${socket}`,
    `unix://ann:${SECRET}@${socket}?db=1`,
    `redis://:${SECRET}@127.0.0.1:${port}`,
    `redis://${SECRET}@127.0.0.1:${port}`,
    `redis://:${SECRET}@127.0.0.1:${port}/99`,
    `redis://:${SECRET}@127.0.0.1:${port},127.0.0.1:${port}`,
    `unix://:${SECRET}@/nonexistent/redis.sock`,
    `unix://:${SECRET}%2F%40@/nonexistent/redis.sock?db=3`,
    `unix://:${SECRET}@${socket}/deeper`,
    `redis://:${SECRET}@127.0.0.1:1`,
    `redis://:${SECRET}%40@no-such-host.invalid:1`,
    `redis+sentinel://:${SECRET}@127.0.0.1:1/main?sentinel_password=${SECRET}`,
  ];
  const texts = await Promise.all(urls.map(textsOf));
  for (const [at, text] of texts.entries()) {
    expect(text).not.toContain(SECRET);
    expect(text.length, urls[at]).toBeGreaterThan(100);
  }
});

test("a unix URL names a user, a password and a database", async () => {
  const { socket, redis } = await startServer();
  await redis.acl("SETUSER", "ann", "on", ">p@ss/word", "~*", "+@all");
  const used = connect({ url: `unix://ann:p%40ss%2Fword@${socket}?db=2` }, "commands");
  await used.set("some", "1");
  expect(await used.call("ACL", "WHOAMI")).toBe("ann");
  used.disconnect();
  await redis.select(2);
  expect(await redis.get("some")).toBe("1");
  await redis.select(0);
  for (const url of [`unix:${socket}`, `unix://${socket}`, `unix://${socket}?db=0`]) {
    const plain = connect({ url }, "commands");
    expect(await plain.dbsize()).toBe(0);
    plain.disconnect();
  }
});
