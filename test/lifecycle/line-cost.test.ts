/** What the lines of conversations cost in commands of Redis. */
import { expect, test } from "vitest";
import { openLifecycle } from "../support/lifecycle.ts";
import { type OwnRedis, startOwnRedis } from "../support/own-redis.ts";

/** Of the test and of the connection itself. */
const OTHERS = ["config", "info", "ping", "evalsha", "eval", "script", "hgetall", "flushall"];

/** How many commands the script makes for a submit, its lease and its end; `followed`: another one waits behind it. */
async function commandsOf({ redis }: OwnRedis, spec: object, followed = false) {
  await redis.flushall();
  const { shards, move } = await openLifecycle(spec, redis);
  const count = async (make: () => Promise<unknown>): Promise<number> => {
    await redis.config("RESETSTAT");
    await make();
    const counts = [...(await redis.info("commandstats")).matchAll(/cmdstat_(\w+):calls=(\d+)/g)];
    return counts
      .filter(([, name = ""]) => !OTHERS.includes(name))
      .reduce((sum, [, , calls]) => sum + Number(calls), 0);
  };
  const id = shards.newDelegationId("scout");
  const submit = await count(() => move("submit", id));
  if (followed) await move("submit", shards.newDelegationId("scout"));
  const lease = await count(() => move("lease", id));
  return { submit, lease, complete: await count(() => move("complete", id)) };
}

test("a line costs two commands at the submit, none at the lease, three at the end, and the move of the next one", async () => {
  const own = await startOwnRedis();
  const plain = await commandsOf(own, {});
  const { submit, lease, complete } = plain;
  expect(await commandsOf(own, { serial_by: "context" })).toEqual({
    submit: submit + 2,
    lease,
    complete: complete + 3,
  });
  // Who comes next gets an event and a ticket, as in a submit, but no new record.
  const followed = await commandsOf(own, { serial_by: "context" }, true);
  expect(followed).toMatchObject({ submit: submit + 2, lease });
  expect(followed.complete - complete).toBeLessThan(submit);
  expect(await commandsOf(own, {}, true)).toEqual(plain);
});
