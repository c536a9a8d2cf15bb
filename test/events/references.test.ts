/** The feeds of principals refer to the events of delegations. */
import { expect, test } from "vitest";
import { readPage } from "../../src/events/stored.ts";
import { as, client, startBroker } from "../support/broker.ts";

const FEEDS = ["{errand:0}:feed:caller:alice", "{errand:0}:feed:agent:scout"];

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const [alice, scout] = [await as(broker.url, "caller:alice"), await as(broker.url, "agent:scout")];
  const leased = async () => {
    const { id } = (await alice.delegate("scout", { task: "canary of the task" })).body;
    const [lease] = (await api.lease("scout")).body.leases;
    return { id: String(id), lease: String(lease.lease_id) };
  };
  const finished = async () => {
    const { id, lease } = await leased();
    await api.reply(lease, { text: "canary of the reply" });
    return id;
  };
  const feedOf = async (principal: typeof alice, after = "0", limit = 1_000) =>
    (
      await principal.call("GET", `/v1/events?after=${after}&limit=${limit}`, undefined, {
        accept: "application/json",
      })
    ).body;
  return { ...broker, api, alice, scout, leased, finished, feedOf };
}

const seqs = (events: readonly { delegation_id: string; seq: number }[]) =>
  events.map(({ delegation_id, seq }) => `${delegation_id} ${seq}`);

test("a feed shows the events of its principal as they are, and has no text of them", async () => {
  const { redis, alice, scout, finished, feedOf } = await setup();
  const ids = [await finished(), await finished()];
  const own = [];
  for (const id of ids) own.push(...(await alice.events(id)).body.events);
  expect(own).toHaveLength(6);
  for (const principal of [alice, scout]) expect((await feedOf(principal)).events).toEqual(own);
  for (const feed of FEEDS) {
    expect(JSON.stringify(await redis.xrange(feed, "-", "+"))).not.toContain("canary");
  }
  // From every cursor, and in pages of every length.
  for (const [at, { id }] of own.entries())
    expect((await feedOf(alice, id)).events).toEqual(own.slice(at + 1));
  for (let limit = 1; limit <= own.length; limit += 1) {
    const read = [];
    for (let after = "0", more = true; more; ) {
      const { events, cursor } = await feedOf(alice, after, limit);
      read.push(...events);
      after = cursor;
      more = events.length > 0;
    }
    expect(read).toEqual(own);
  }
});

test("entries whose delegations are deleted are left out: a reader gets past any number of them, without a RESET", async () => {
  const { redis, alice, finished, feedOf } = await setup();
  const first = await finished();
  const { cursor } = await feedOf(alice);
  const gone = "dlg_0_00000000000000000000000000";
  const batch = redis.pipeline();
  for (let n = 0; n < 1_000; n += 1) batch.xadd(FEEDS[0] ?? "", "*", "r", `${gone} ${1 + (n % 3)}`);
  await batch.exec();
  const second = await finished();
  const shown = [1, 2, 3].map((seq) => `${second} ${seq}`);
  expect(seqs((await feedOf(alice, cursor)).events)).toEqual(shown);
  await redis.del(`{errand:0}:d:${first}:events`);
  expect(seqs((await feedOf(alice)).events)).toEqual(shown);
});

test("an event that one feed refuses is in the other one once", async () => {
  const { redis, api, alice, leased, feedOf } = await setup();
  const { lease } = await leased();
  const refusing = FEEDS[1] ?? "";
  await redis.rename(refusing, "aside");
  await redis.set(refusing, "no stream");
  for (let done = 0; done < 3; done += 1) await api.heartbeat(lease, { progress: { done } });
  await redis.del(refusing);
  await redis.rename("aside", refusing);
  await api.reply(lease);
  const { events } = await feedOf(alice);
  expect(events.map(({ seq }: { seq: number }) => seq)).toEqual([1, 2, 3, 4, 5, 6]);
});

test("a page of a feed ends at a mebibyte of the events that it refers to", async () => {
  const { redis, alice, api, leased } = await setup();
  const { id } = await leased();
  for (let n = 0; n < 4; n += 1) await alice.message(id, "x".repeat(400_000));
  await api.cancel(id);
  const sizes: number[] = [];
  for (let position = "0-0", more = true; more; ) {
    const page = await readPage(redis, FEEDS[0] ?? "", position, "0-0");
    sizes.push(page.entries.length);
    position = page.position;
    more = page.kind === "more";
  }
  expect(sizes).toEqual([4, 3]);
});
