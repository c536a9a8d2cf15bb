import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test, vi } from "vitest";
import type { ReplayPace } from "../../src/events/replay-pace.ts";
import { type Watch, type Watched, watch } from "../../src/events/watch.ts";
import { startBroker } from "../support/broker.ts";
import { entryFields } from "../support/entry.ts";
import { until } from "../support/until.ts";

const STREAM = "{errand:0}:events";
/** More than is buffered for one reader, by number and by size. */
const MANY = 3_000;
const LARGE = 800;
const LARGE_CHARS = 8_000;

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

async function setup() {
  const { gateway, redis } = await startBroker();
  const { shards, feed, bodies } = gateway.broker;
  let seen = 0;
  feed.subscribe({ kind: "all" }, { push: () => (seen += 1), gap: () => {} });
  const open = (after: string, pace?: ReplayPace) => {
    const gone = new AbortController();
    const source = { kind: "all" } as const;
    const options: Watch = {
      redis: gateway.broker.redis,
      shards,
      feed,
      bodies,
      source,
      keptMs: 3_600_000,
      after: [after],
      signal: gone.signal,
      ...(pace && { pace }),
    };
    return { events: watch(options), leave: () => gone.abort() };
  };
  /** Writes this many events and waits until the gateway has read them. */
  const write = async (count: number, chars: number) => {
    const expected = seen + count;
    const more = `"note":"${"x".repeat(chars)}"`;
    const batch = redis.pipeline();
    for (let n = 0; n < count; n += 1) batch.xadd(STREAM, "*", ...entryFields({ more }));
    await batch.exec();
    await until(() => seen === expected, { what: "the feed" });
  };
  /** A reader that has caught up and then stops reading. */
  const openStuck = async (after: string) => {
    const { events, leave } = open(after);
    let event: Watched | undefined;
    do event = (await events.next()).value ?? undefined;
    while (event && !("caught_up" in event));
    return { events, leave };
  };
  return { redis, own: gateway.broker.redis, open, openStuck, write };
}

/** The ids that it still receives until its stream ends. */
async function drain(events: AsyncIterable<Watched>): Promise<string[]> {
  const ids: string[] = [];
  for await (const event of events) if ("entry" in event) ids.push(event.entry.id);
  return ids;
}

test.each([
  ["many", MANY, 1],
  ["large", LARGE, LARGE_CHARS],
])(
  "a reader with %s unread events is disconnected, and resumes without missing any",
  async (_what, count, chars) => {
    const { redis, open, openStuck, write } = await setup();
    const { events } = await openStuck("0-0");
    await write(count, chars);
    const first = await drain(events);
    expect(first.length).toBeGreaterThan(0);
    expect(first.length).toBeLessThan(count);

    const rest = open(first.at(-1) ?? "");
    const ids = [...first];
    for await (const event of rest.events) {
      if ("reset" in event) throw new Error("nothing was trimmed");
      if ("entry" in event) ids.push(event.entry.id);
      if ("caught_up" in event) rest.leave();
    }
    expect(ids).toEqual((await redis.xrange(STREAM, "-", "+")).map(([id]) => id));
  },
);

test("a reader that keeps up is not disconnected, however many events there are", async () => {
  const { openStuck, write } = await setup();
  const { events, leave } = await openStuck("0-0");
  let read = 0;
  const done = (async () => {
    for await (const event of events) if ("entry" in event) read += 1;
  })();
  for (let round = 0; round < 8; round += 1) await write(LARGE / 4, LARGE_CHARS);
  await until(() => read === 2 * LARGE);
  leave();
  await done;
});

test("the buffers of readers that do not read do not grow", async () => {
  const { redis, openStuck, write } = await setup();
  const { leave } = await openStuck("0-0");
  const round = async () => {
    await write(LARGE, LARGE_CHARS);
    await redis.xtrim(STREAM, "MAXLEN", 1);
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  await round();
  const before = await round();
  await round();
  await round();
  expect((await round()) - before).toBeLessThan(LARGE * LARGE_CHARS);
  leave();
});

test("a reader that resumes gets its first events by one call", async () => {
  const { own, open, write } = await setup();
  await write(3, 1);
  const scripts = vi.spyOn(own, "evalsha");
  const { events } = open("1-0");
  for (let n = 0; n < 3; n += 1) expect((await events.next()).value).toHaveProperty("entry");
  expect((await events.next()).value).toHaveProperty("caught_up");
  expect(scripts.mock.calls.filter(([, , key]) => key === STREAM)).toHaveLength(1);
  await events.return();
});

test("a replay loads nothing before it has room, takes a turn for each page, and counts what it holds", async () => {
  const { open, write } = await setup();
  await write(500, 2_000);
  let give = () => {};
  const room = new Promise<void>((resolve) => {
    give = resolve;
  });
  const log: string[] = [];
  let reading = 0;
  let held = 0;
  const pace: ReplayPace = {
    hold: async (bytes) => {
      log.push("hold");
      await room;
      held = bytes;
      const set = (loaded: number) => {
        held = loaded;
      };
      return { set, release: () => set(0) };
    },
    turn: async () => {
      log.push("turn");
      reading += 1;
      return () => {
        reading -= 1;
      };
    },
  };
  const { events, leave } = open("0-0", pace);
  const first = events.next();
  await new Promise((resolve) => setImmediate(resolve));
  expect(log).toEqual(["hold"]);
  give();
  let count = 0;
  for (let next = await first; next.value && !("caught_up" in next.value); next = await events.next()) {
    if (!("entry" in next.value)) continue;
    count += 1;
    // No turn is kept while the reader takes its events, but their bytes are counted.
    expect([next.value.isHeld, reading]).toEqual([true, 0]);
    expect(held).toBeGreaterThan(100_000);
  }
  // Pages of 200 entries, each with a turn; the first comes with the edges of the stream.
  expect([count, log, held]).toEqual([500, ["hold", "turn", "hold", "turn", "hold", "turn"], 0]);
  leave();
  await events.return();
});
