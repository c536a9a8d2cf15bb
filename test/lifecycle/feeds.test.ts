import { expect, test } from "vitest";
import { entryFields } from "../support/entry.ts";
import { openLifecycle } from "../support/lifecycle.ts";
import { ownEvents } from "../support/own-events.ts";

const RETENTION_MS = 3_600_000;
const FEEDS = ["{errand:0}:feed:caller:alice", "{errand:0}:feed:agent:scout"];
/** Redis trims whole nodes of a hundred entries each. */
const OLD = 250;

test.each(FEEDS)(
  "%s is trimmed to the retention time on every write, and loses nothing else",
  async (feed) => {
    const { redis, inState } = await openLifecycle();
    const tooOld = Date.now() - RETENTION_MS - 10_000;
    const kept = Date.now() - RETENTION_MS + 60_000;
    for (let n = 0; n < OLD; n += 1) await redis.xadd(feed, `${tooOld}-${n}`, ...entryFields());
    for (let n = 0; n < OLD; n += 1) await redis.xadd(feed, `${kept}-${n}`, ...entryFields());
    const id = await inState("submitted");
    const entries = await redis.xrange(feed, "-", "+");
    const left = (ms: number) => entries.filter(([one]) => one.startsWith(`${ms}-`)).length;
    expect(left(tooOld)).toBeLessThan(100);
    expect(left(kept)).toBe(OLD);
    expect(entries.at(-1)?.[1].join()).toContain(id);
  },
);

const EXTRA_MS = 60_000;

test.each(FEEDS)(
  "%s is deleted as a whole one retention time after its last event, or up to a minute later",
  async (feed) => {
    const { redis, clock, move, inState } = await openLifecycle();
    const left = () => redis.pttl(feed);
    const id = await inState("submitted");
    expect(await left()).toBeGreaterThan(RETENTION_MS);
    expect(await left()).toBeLessThanOrEqual(RETENTION_MS + EXTRA_MS);
    // Within the extra time of the submit, an event does not renew the expiry.
    clock.offset_ms = EXTRA_MS - 1_000;
    await redis.pexpire(feed, RETENTION_MS + 500_000);
    await move("lease", id);
    expect(await left()).toBeGreaterThan(RETENTION_MS + EXTRA_MS);
    // After the extra time, an event renews the expiry.
    clock.offset_ms = EXTRA_MS;
    await redis.pexpire(feed, 1_000);
    await move("complete", id);
    expect(await left()).toBeGreaterThan(RETENTION_MS);
  },
);

test.each(FEEDS)("%s is also deleted if it was dropped and an event created it again", async (feed) => {
  const { redis, move, inState } = await openLifecycle();
  const id = await inState("submitted");
  // The deletion of an agent does the same.
  await redis.del(feed);
  await move("lease", id);
  expect(await redis.xlen(feed)).toBe(1);
  expect(await redis.pttl(feed)).toBeGreaterThan(RETENTION_MS);
});

test("a delegation's own events neither expire nor are trimmed while it is kept", async () => {
  const { redis, inState } = await openLifecycle();
  const id = await inState("completed");
  expect(await redis.pttl(`{errand:0}:d:${id}:events`)).toBe(-1);
  expect(await ownEvents(redis, id)).toHaveLength(3);
});
