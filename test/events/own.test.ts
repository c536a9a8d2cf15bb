/** A delegation's own events are read, continued and erased. */
import { expect, test } from "vitest";
import { toPrincipal } from "../../src/engine/access/access.ts";
import { createPushConfig } from "../../src/engine/outbound/push-notifications/configs.ts";
import { readEvent, readPage } from "../../src/events/stored.ts";
import type { Redis } from "../../src/redis/connect.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { ownEvents } from "../support/own-events.ts";
import { type Received, startReceiver } from "../support/receiver.ts";
import { openStream } from "../support/sse.ts";
import { until } from "../support/until.ts";

const KEY = "{errand:0}:d:x:events";
/** Between the milliseconds there is nothing; within one the numbers have different lengths. */
const IDS = ["5-0", "5-1", "5-9", "5-10", "5-11", "70-0", "800-0", "800-1", "9000-0"];
const BETWEEN = ["0-0", "4-7", "5-5", "5-100", "6-0", "700-3", "8999-0", "9000-1", "10000-0"];

const isAfter = (one: string, other: string) => {
  const [ms = 0, n = 0] = one.split("-").map(Number);
  const [otherMs = 0, otherN = 0] = other.split("-").map(Number);
  return ms - otherMs || n - otherN;
};

async function setup() {
  const broker = await startBroker({ callbackAllow: ["127.0.0.1"] });
  const api = client(broker.url);
  await api.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  const leased = async (more = {}) => {
    const { id } = (await alice.delegate("scout", more)).body;
    const [lease] = (await api.lease("scout")).body.leases;
    return { id: String(id), lease: String(lease.lease_id) };
  };
  return { ...broker, api, alice, leased };
}

const add = (redis: Redis, id: string, text: string) => redis.rpush(KEY, id, text);

test("is read from every position on, in pages of every length", async () => {
  const { redis } = await setup();
  for (const id of IDS) await add(redis, id, `event ${id}`);
  for (const position of [...IDS, ...BETWEEN]) {
    const rest = IDS.filter((id) => isAfter(id, position) > 0);
    for (let most = 1; most <= IDS.length + 1; most += 1) {
      const { kind, entries } = await readPage(redis, KEY, position, "0-0", most);
      expect(entries).toEqual(rest.slice(0, most).map((id) => [id, ["e", `event ${id}`]]));
      if (rest.length !== most) expect(kind).toBe(rest.length > most ? "more" : "end");
    }
  }
  for (const id of IDS) expect(await readEvent(redis, KEY, id)).toEqual(["e", `event ${id}`]);
  for (const id of BETWEEN) expect(await readEvent(redis, KEY, id)).toBeUndefined();
});

test("a page ends at a mebibyte; a larger event is a page of its own", async () => {
  const { redis } = await setup();
  const sizes = [400_000, 400_000, 400_000, 3_000_000, 1, 1];
  for (const [at, size] of sizes.entries()) await add(redis, IDS[at] ?? "", "x".repeat(size));
  const lengths: number[] = [];
  for (let position = "0-0", more = true; more; ) {
    const { kind, entries } = await readPage(redis, KEY, position, "0-0");
    lengths.push(entries.length);
    position = entries.at(-1)?.[0] ?? "";
    more = kind === "more";
  }
  expect(lengths).toEqual([2, 1, 1, 2]);
});

test("continues: a subscriber gets every event once, from every cursor", async () => {
  const { url, alice, api, leased } = await setup();
  const { id, lease } = await leased();
  const open = await openStream(`${url}/v1/delegations/${id}/events?after=0`);
  await until(() => open.events.length === 2);
  await api.heartbeat(lease, { progress: { done: 1 } });
  await alice.message(id, "and hurry");
  await api.reply(lease);
  await until(() => open.events.length === 5);
  const { events } = (await alice.events(id)).body;
  expect(open.events.map(({ data }) => data)).toEqual(events);
  const feed = await alice.call("GET", "/v1/events?after=0", undefined, { accept: "application/json" });
  expect(feed.body.events).toEqual(events);
  expect(events.map(({ seq }: { seq: number }) => seq)).toEqual([1, 2, 3, 4, 5]);
  for (const [at, event] of events.slice(0, -1).entries()) {
    expect((await alice.events(id, `?after=${event.id}`)).body.events).toEqual(events.slice(at + 1));
  }
});

test("is called back, and pushed to a config from its creation on", async () => {
  const { gateway, api, alice, leased } = await setup();
  const callback = await startReceiver();
  const { id, lease } = await leased({ callback: { url: callback.url } });
  const [live, late] = [await startReceiver(), await startReceiver()];
  const push = (url: string) => createPushConfig(gateway.broker, toPrincipal("caller:alice"), id, { url });
  await push(live.url);
  await api.heartbeat(lease, { progress: { done: 1 } });
  await api.reply(lease);
  await push(late.url);
  await until(() => callback.received.length === 1);
  expect(JSON.parse(callback.received[0]?.body ?? "")).toEqual((await alice.events(id)).body.events.at(-1));
  await until(() => live.received.length === 2 && late.received.length === 1);
  const seqOf = ({ headers }: Received) => String(headers["webhook-id"]).split("_").at(-1);
  expect([live, late].map(({ received }) => received.map(seqOf))).toEqual([["3", "4"], ["4"]]);
});

test("is erased with its delegation, from the feeds too", async () => {
  const { redis, api, alice, leased } = await setup();
  const { id, lease } = await leased();
  for (let done = 0; done < 10; done += 1) await api.heartbeat(lease, { progress: { done } });
  await api.reply(lease);
  expect((await alice.erase(id)).status).toBe(204);
  for (const stream of ["events", "feed:caller:alice", "feed:agent:scout"]) {
    expect(await redis.xlen(`{errand:0}:${stream}`)).toBe(0);
  }
  expect(await redis.exists(`{errand:0}:d:${id}:events`)).toBe(0);
});

test("the events of a short delegation take less than 2 kB", async () => {
  const { redis, api, leased } = await setup();
  const { id, lease } = await leased({ task: "x".repeat(1_000) });
  await api.reply(lease, { text: "y".repeat(1_000) });
  expect(await ownEvents(redis, id)).toHaveLength(3);
  expect(await redis.memory("USAGE", `{errand:0}:d:${id}:events`)).toBeLessThan(2_000);
});
