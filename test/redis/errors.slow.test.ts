import { describe, expect, test } from "vitest";
import { classify, isOutOfMemory, isRefused, isUnavailable, REDIS_ERRORS } from "../../src/redis/errors.ts";
import { Script } from "../../src/redis/script.ts";
import { startServer } from "../support/redis-pair.ts";
import { until } from "../support/until.ts";

const reply = (message: string): Error => Object.assign(new Error(message), { name: "ReplyError" });
const thrown = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

describe("the table", () => {
  test.each(Object.entries(REDIS_ERRORS))(
    "%s is recognized at the start of a message, and within a script's error",
    (word, row) => {
      expect(classify(reply(`${word} something is wrong: really`))).toBe(row);
      expect(classify(reply(`${word} something is wrong. script: 0f, on @user_script:12.`))).toBe(row);
      expect(classify(reply(`ERR Error running script (call to f_0f): @user_script:12: -${word} no`))).toBe(
        row,
      );
      expect(classify(reply(`ERR user_script:3: ${word} no`))).toBe(row);
    },
  );

  test("calls that the driver gives up are unavailable, and may have been executed", () => {
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    const many = Object.assign(new Error("connect EMFILE"), { code: "EMFILE" });
    const errors = [new Error("Command timed out"), new Error("Connection is closed."), refused, many];
    for (const error of errors) {
      expect([isUnavailable(error), isRefused(error)]).toEqual([true, false]);
    }
  });

  test("a bug is not classified as an error of Redis", () => {
    const bugs = [
      reply("WRONGTYPE Operation against a key"),
      reply("ERR unknown command 'OOM'"),
      reply("ERR user_script:3: attempt to index a nil value"),
      new Error("OOM: a message of ours"),
      "READONLY",
    ];
    for (const bug of bugs) expect(classify(bug)).toBeNull();
  });
});

describe("a real Redis", () => {
  const writes = new Script("#!lua\nreturn redis.call('SET', KEYS[1], 1)");
  const bare = new Script("return redis.call('SET', KEYS[1], 1)");

  test.each(["NOREPLICAS", "OOM", "READONLY"] as const)("refuses with %s", async (word) => {
    const { redis } = await startServer();
    await redis.set("k", "v");
    if (word === "OOM") await redis.config("SET", "maxmemory", "1");
    else if (word === "NOREPLICAS") await redis.config("SET", "min-replicas-to-write", "1");
    else await redis.replicaof("127.0.0.1", 1);
    const run = [redis.set("k", "w"), writes.run(redis, ["k"], []), bare.run(redis, ["k"], [])];
    for (const error of await Promise.all(run.map(thrown))) expect(classify(error)).toBe(REDIS_ERRORS[word]);
    const all = await Promise.all(run.map(thrown));
    expect(all.every(isOutOfMemory)).toBe(word === "OOM");
    expect(all.every(isRefused)).toBe(true);
  });

  test("refuses reads, too, with MASTERDOWN", async () => {
    const { redis } = await startServer();
    await redis.config("SET", "replica-serve-stale-data", "no");
    await redis.replicaof("127.0.0.1", 1);
    expect(classify(await thrown(redis.get("k")))).toBe(REDIS_ERRORS.MASTERDOWN);
  });

  test("refuses with BUSY while another client's script runs", async () => {
    const { redis } = await startServer(["busy-reply-threshold 20"]);
    const other = redis.duplicate();
    other.on("error", () => {});
    const looping = thrown(other.eval("while true do end", 0));
    const error = await until(async () => await thrown(redis.set("k", "v")), { what: "BUSY" });
    expect(classify(error)).toBe(REDIS_ERRORS.BUSY);
    await redis.call("SCRIPT", "KILL");
    const killed = await looping;
    other.disconnect();
    expect([isUnavailable(killed), isRefused(killed)]).toEqual([true, true]);
  });
});
