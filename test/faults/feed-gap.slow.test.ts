/** A gateway's feed loses its connection, or falls behind, while events are written. Pub/sub stays up. */

import { expect, inject, test } from "vitest";
import type { Redis } from "../../src/redis/connect.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { cutConnection } from "../support/cut-connection.ts";
import { entryFields } from "../support/entry.ts";
import { openRedisLink } from "../support/redis-link.ts";
import { subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

const STREAM = "{errand:0}:events";
const FEED = "{errand:0}:feed:caller:alice";
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
    const proxy = await openRedisLink(inject("redisSocket"));
    const broker = await startBroker();
    const behind = await broker.another({ redis: { url: `redis://127.0.0.1:${proxy.port}/${broker.db}` } });
    await client(broker.url).agent("scout");
    const alice = await as(broker.url, "caller:alice");
    const subscriber = subscribe([behind.url], alice.token);
    const sent: string[] = [];
    const delegate = async () => sent.push((await alice.delegate("scout")).body.id);
    const receivedIds = () => subscriber.events.map(({ data }) => data.delegation_id);
    await delegate();
    await until(() => receivedIds().length === 1);

    await proxy.fault("refuse");
    for (let n = 0; n < MISSED; n += 1) await delegate();
    await happens(broker.redis);
    await proxy.heal();
    await until(() => receivedIds().length >= sent.length, { what: "what was missed" });
    await delegate();
    await until(() => receivedIds().length >= sent.length, { what: "what came after" });
    expect(receivedIds()).toEqual(sent);
  },
);

test("a cursor after everything that Redis has, as after a fail-over that lost events, gets one RESET", async () => {
  const { url, redis } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const alice = await as(url, "caller:alice");
  const kept = (await alice.delegate("scout")).body.id;
  const json = { accept: "application/json" };
  const read = async (after: string) =>
    (await alice.call("GET", `/v1/events?after=${after}`, undefined, json)).body;
  const { cursor: before } = await read("0");
  const [feed, stream] = await Promise.all([redis.dumpBuffer(FEED), redis.dumpBuffer(STREAM)]);
  await alice.delegate("scout");
  const { cursor } = await read(before);
  // The events since then are lost.
  await redis.restore(FEED, 0, feed, "REPLACE");
  await redis.restore(STREAM, 0, stream, "REPLACE");

  const page = await read(cursor);
  expect(page.events[0].type).toBe("RESET");
  expect(page.events.slice(1).map(({ delegation_id }: { delegation_id: string }) => delegation_id)).toEqual([
    kept,
  ]);
  const next = (await alice.delegate("scout")).body.id;
  const { events } = await read(page.cursor);
  expect(events.map(({ delegation_id }: { delegation_id: string }) => delegation_id)).toEqual([next]);
});

test("if events were trimmed before the feed could read them, its subscribers are notified of the gap", async () => {
  const { redis, gateway } = await startBroker();
  const pushed: string[] = [];
  const push = (entry: { id: string }) => pushed.push(entry.id);
  gateway.broker.feed.subscribe({ kind: "all" }, { push, gap: () => pushed.push("gap") });
  await redis.xadd(STREAM, "*", ...entryFields());
  await until(() => pushed.length === 1);
  const burst = redis.multi();
  for (let n = 0; n < 1_200; n += 1) burst.xadd(STREAM, "*", ...entryFields());
  await burst.xtrim(STREAM, "MAXLEN", 600).exec();
  await until(() => pushed.includes("gap"));

  // Live again, from the stream's position at that time.
  pushed.length = 0;
  const id = await redis.xadd(STREAM, "*", ...entryFields());
  await until(() => pushed.includes(id ?? ""));
});

test("if a stream went back in time, the feed continues from the stream's current position", async () => {
  const broker = await startBroker();
  const { redis, gateway } = broker;
  const pushed: string[] = [];
  const push = (entry: { id: string }) => pushed.push(entry.id);
  gateway.broker.feed.subscribe({ kind: "all" }, { push, gap: () => pushed.push("gap") });
  const id = await redis.xadd(STREAM, "*", ...entryFields());
  await until(() => pushed.length === 1);
  await redis
    .multi()
    .del(STREAM)
    .xadd(STREAM, "5-0", ...entryFields())
    .exec();
  await cutConnection(broker, "blocking");
  await until(() => pushed.includes("gap"));
  await redis.xadd(STREAM, "6-0", ...entryFields());
  await until(() => pushed.includes("6-0"));
  expect(pushed).toEqual([id, "gap", "6-0"]);
});
