/** What the turns of delegators cost in commands of Redis. docs/benchmarks.md has the figures. */
import { expect, test } from "vitest";
import { openLifecycle } from "../support/lifecycle.ts";
import { startOwnRedis } from "../support/own-redis.ts";

/** Of the test and of the connection itself. */
const OTHERS = ["config", "info", "ping", "evalsha", "eval", "script", "hgetall", "flushall"];

test("a submit costs one command more where its delegator's work waits, four where only another's does; a lease none", async () => {
  const { redis } = await startOwnRedis();
  const { shards, move, writer } = await openLifecycle({}, redis);
  const count = async (make: () => Promise<unknown>): Promise<number> => {
    await redis.config("RESETSTAT");
    await make();
    const counts = [...(await redis.info("commandstats")).matchAll(/cmdstat_(\w+):calls=(\d+)/g)];
    return counts
      .filter(([, name = ""]) => !OTHERS.includes(name))
      .reduce((sum, [, , calls]) => sum + Number(calls), 0);
  };
  const submit = (who: string) =>
    count(() => move("submit", shards.newDelegationId("scout"), { delegator: `caller:${who}` }));
  const take = () => count(() => writer.take({ agent: "scout", nonce: "n", worker_id: "w" }));
  // The first ticket of a queue also writes BullMQ's settings of it.
  await submit("ana");
  await take();
  const alone = await submit("ana");
  // The turn of the first one is stored now.
  await submit("ana");
  expect(await submit("ana")).toBe(alone + 1);
  expect(await submit("bob")).toBe(alone + 4);
  expect(await submit("bob")).toBe(alone + 1);
  const leases = [await take(), await take(), await take(), await take(), await take()];
  expect(new Set(leases).size).toBe(1);
});
