/** A gateway's feed loses its connection, or falls behind, while events are written. Pub/sub stays up. */
import type { Redis } from "ioredis";
import { expect, inject, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { cutConnection } from "../support/cut-connection.ts";
import { entryFields } from "../support/entry.ts";
import { startProxy } from "../support/proxy.ts";
import { subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

const STREAM = "{errand:0}:events";
const MISSED = 5;

/** What happens to the shard's short stream while the gateway is away; the feeds keep its events. */
const MEANWHILE: Record<string, (redis: Redis) => Promise<unknown>> = {
  "nothing happens": async () => {},
  "the stream is trimmed past the feed's position": (redis) => redis.xtrim(STREAM, "MAXLEN", 1),
  "the stream goes back in time": (redis) => redis.del(STREAM),
};

test.each(Object.entries(MEANWHILE))(
  "the connection is lost and %s: a subscriber misses nothing",
  async (_name, happens) => {
    const proxy = await startProxy(inject("redisSocket"));
    const broker = await startBroker();
    const behind = await broker.another({ redis: { url: `redis://127.0.0.1:${proxy.port}/${broker.db}` } });
    await client(broker.url).agent("scout");
    const alice = await as(broker.url, "caller:alice");
    const subscriber = subscribe([behind.url], alice.token);
    const sent: string[] = [];
    const delegate = async () => sent.push((await alice.delegate("scout")).body.id);
    const heard = () => subscriber.events.map(({ data }) => data.delegation_id);
    await delegate();
    await until(() => heard().length === 1);

    await proxy.fault("refuse");
    for (let n = 0; n < MISSED; n += 1) await delegate();
    await happens(broker.redis);
    await proxy.heal();
    await until(() => heard().length >= sent.length, { timeoutMs: 10_000, what: "what was missed" });
    await delegate();
    await until(() => heard().length >= sent.length, { timeoutMs: 10_000, what: "what came after" });
    expect(heard()).toEqual(sent);
  },
);

test("if events were trimmed before the feed could read them, its subscribers are notified of the gap", async () => {
  const { redis, gateway } = await startBroker();
  const told: string[] = [];
  const push = (entry: { id: string }) => told.push(entry.id);
  gateway.broker.feed.subscribe({ kind: "all" }, { push, gap: () => told.push("gap") });
  await redis.xadd(STREAM, "*", ...entryFields());
  await until(() => told.length === 1);
  const burst = redis.multi();
  for (let n = 0; n < 1_200; n += 1) burst.xadd(STREAM, "*", ...entryFields());
  await burst.xtrim(STREAM, "MAXLEN", 600).exec();
  await until(() => told.includes("gap"));

  // Live again, from the stream's position at that time.
  told.length = 0;
  const id = await redis.xadd(STREAM, "*", ...entryFields());
  await until(() => told.includes(id ?? ""));
});

test("if a stream went back in time, the feed continues from the stream's current position", async () => {
  const broker = await startBroker();
  const { redis, gateway } = broker;
  const told: string[] = [];
  const push = (entry: { id: string }) => told.push(entry.id);
  gateway.broker.feed.subscribe({ kind: "all" }, { push, gap: () => told.push("gap") });
  const id = await redis.xadd(STREAM, "*", ...entryFields());
  await until(() => told.length === 1);
  await redis
    .multi()
    .del(STREAM)
    .xadd(STREAM, "5-0", ...entryFields())
    .exec();
  await cutConnection(broker, "blocking");
  await until(() => told.includes("gap"));
  await redis.xadd(STREAM, "6-0", ...entryFields());
  await until(() => told.includes("6-0"));
  expect(told).toEqual([id, "gap", "6-0"]);
});
