import { expect, test } from "vitest";
import { readPage } from "../../src/events/stored.ts";
import { currentPositions, type Watched, watch } from "../../src/events/watch.ts";
import { as, startBroker } from "../support/broker.ts";
import { entryFields } from "../support/entry.ts";

const STREAM = "{errand:0}:events";
const KEPT_MS = 3_600_000;
const JSON_ONLY = { accept: "application/json" };

async function setup(options = {}) {
  const broker = await startBroker({ retentionMs: KEPT_MS, ...options });
  const { redis, gateway } = broker;
  const { shards, feed, bulk, bodies } = gateway.broker;
  /** Adds this many entries of this size with one call; returns their ids. */
  const write = async (count: number, chars = 1, stream = STREAM): Promise<string[]> => {
    const more = `"note":"${"x".repeat(chars)}"`;
    const batch = redis.pipeline();
    for (let n = 0; n < count; n += 1) batch.xadd(stream, "*", ...entryFields({ more }));
    return ((await batch.exec()) ?? []).map(([, id]) => String(id));
  };
  const open = (...after: string[]) => {
    const gone = new AbortController();
    const source = { kind: "all" } as const;
    const events = watch({
      ...{ redis: bulk, shards, feed, bodies, source, after },
      keptMs: KEPT_MS,
      signal: gone.signal,
    });
    return { events, leave: () => gone.abort() };
  };
  return { ...broker, write, open };
}

const kindOf = (event: Watched) =>
  "entry" in event ? event.entry.id : "reset" in event ? "RESET" : "caught up";

/** The stored events that a reader from this cursor receives. */
async function collect({ events, leave }: { events: AsyncIterable<Watched>; leave: () => void }) {
  const kinds: string[] = [];
  for await (const event of events) {
    if ("caught_up" in event) leave();
    else kinds.push(kindOf(event));
  }
  return kinds;
}

test("one read returns at most a mebibyte, or one entry that is larger", async () => {
  const { redis, write } = await setup();
  const ids = [...(await write(5, 400_000)), ...(await write(1, 3_000_000)), ...(await write(300))];
  const pages: string[][] = [];
  for (let position = "0-0", more = true; more; ) {
    const page = await readPage(redis, STREAM, position, "0-0");
    pages.push(page.entries.map(([id]) => id));
    position = pages.at(-1)?.at(-1) ?? "";
    more = page.kind === "more";
  }
  expect(pages.map(({ length }) => length)).toEqual([2, 2, 1, 1, 200, 100]);
  expect(pages.flat()).toEqual(ids);
});

test("a replay that trimming overtakes ends before the hole, and its reader gets a RESET when it resumes", async () => {
  const { redis, write, open } = await setup();
  const ids = await write(500);
  const { events } = open(ids[0] ?? "");
  const seen: string[] = [];
  for await (const event of events) {
    seen.push(kindOf(event));
    // During its first read.
    if (seen.length === 50) await redis.xtrim(STREAM, "MAXLEN", 100);
  }
  expect(seen).toEqual(ids.slice(1, 1 + seen.length));
  expect(seen.length).toBeLessThan(400);
  expect(await collect(open(seen.at(-1) ?? ""))).toEqual(["RESET", ...ids.slice(400)]);
});

test("a cursor from before the first event, or at the last one, gets no RESET while nothing was trimmed", async () => {
  const { redis, write, open } = await setup();
  const before = `${Date.now() - 60_000}-0`;
  const ids = await write(3);
  expect(await collect(open(before))).toEqual(ids);
  expect(await collect(open(ids[2] ?? ""))).toEqual([]);
  await redis.xtrim(STREAM, "MAXLEN", 0);
  expect(await collect(open(ids[2] ?? ""))).toEqual([]);
  expect(await collect(open(ids[1] ?? ""))).toEqual(["RESET"]);
});

test('the cursor "now" is after the trimmed entries, too', async () => {
  const { redis, gateway, write } = await setup();
  const ids = await write(3);
  await redis.xtrim(STREAM, "MAXLEN", 0);
  expect(await currentPositions(redis, gateway.broker.shards)).toEqual([ids[2]]);
});

test("however many shards were trimmed, there is one RESET, and none after it by its cursor", async () => {
  const { url, redis, gateway, write } = await setup({ shards: 3 });
  const operator = await as(url, "operator");
  const streams = gateway.broker.shards.all.map(({ events }) => events);
  const cursor: string[] = [];
  for (const stream of streams) {
    cursor.push((await write(3, 1, stream))[0] ?? "");
    await redis.xtrim(stream, "MAXLEN", 1);
  }
  const types: string[] = [];
  for (let after = cursor.join("."), more = true; more; ) {
    const path = `/v1/events?after=${after}&limit=1`;
    const { body } = await operator.call("GET", path, undefined, JSON_ONLY);
    types.push(...body.events.map(({ type }: { type: string }) => type));
    more = body.events.length > 0;
    after = body.cursor;
  }
  expect(types).toEqual(["RESET", ...streams.map(() => "DELEGATION_STATUS")]);
});

const ago = (ms: number) => `${Date.now() - ms}-0`;

test("events older than the retention are not shown even if they are stored; a cursor before them gets a RESET", async () => {
  const { redis, open } = await setup();
  const old = [30_000, 20_000].map((ms) => ago(KEPT_MS + ms));
  const young = [ago(60_000), ago(50_000)];
  for (const id of [...old, ...young]) await redis.xadd(STREAM, id, ...entryFields());
  expect(await collect(open("0-0"))).toEqual(young);
  expect(await collect(open(old[0] ?? ""))).toEqual(["RESET", ...young]);
  expect(await collect(open(old[1] ?? ""))).toEqual(young);
  expect(await collect(open(young[0] ?? ""))).toEqual(young.slice(1));
});

test("the sweep trims a shard's events by age, exactly", async () => {
  const { redis, gateway } = await setup();
  const old = Date.now() - KEPT_MS - 10_000;
  for (let n = 0; n < 150; n += 1) await redis.xadd(STREAM, `${old}-${n}`, ...entryFields());
  const young = await redis.xadd(STREAM, ago(60_000), ...entryFields());
  await gateway.sweep.tick();
  expect((await redis.xrange(STREAM, "-", "+")).map(([id]) => id)).toEqual([young]);
});

test("the sweep trims a shard's events by size, the oldest first", async () => {
  const { redis, gateway, write } = await setup();
  const ids = [...(await write(50)), ...(await write(100, 1_000_000))];
  await gateway.sweep.tick();
  const left = (await redis.xrevrange(STREAM, "+", "-")).map(([id]) => id).reverse();
  expect(left).toEqual(ids.slice(-left.length));
  expect(left.length).toBeGreaterThan(20);
  expect(await redis.memory("USAGE", STREAM, "SAMPLES", 0)).toBeLessThan(100 * 1024 * 1024);
  // It trims no more than necessary.
  await redis.del(STREAM);
  await write(1_000);
  await gateway.sweep.tick();
  expect(await redis.xlen(STREAM)).toBe(1_000);
});
