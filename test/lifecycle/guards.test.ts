/** The guards: which calls the script refuses, with what outcome, and that a refusal changes nothing but the lease. */
import { describe, expect, test } from "vitest";
import { dump } from "../support/dump.ts";
import { openLifecycle, type TestLifecycle } from "../support/lifecycle.ts";
import { ownEvents } from "../support/own-events.ts";
import { fieldOf, setFields } from "../support/record.ts";

describe("the lease is fenced", () => {
  test("a call on an older lease is refused with the reason that ended the lease", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    await lifecycle.move("release", id);
    await lifecycle.move("lease", id);
    // Also while a newer lease is live.
    for (const move of ["heartbeat", "complete", "release"] as const) {
      expect(await lifecycle.move(move, id, { fence: 1 })).toMatchObject({
        kind: "lease",
        reason: "released",
      });
    }
    lifecycle.clock.offset_ms = 61_000;
    await lifecycle.move("due", id);
    lifecycle.clock.offset_ms = 0;
    expect(await lifecycle.move("complete", id, { fence: 1 })).toMatchObject({
      kind: "lease",
      reason: "released",
    });
    expect(await lifecycle.move("complete", id, { fence: 2 })).toMatchObject({
      kind: "lease",
      reason: "expired",
    });
    expect(await lifecycle.move("complete", id, { fence: 3 })).toMatchObject({ kind: "no_lease" });
  });

  test.each([
    ["complete", "finished"],
    ["fail", "finished"],
    ["retry", "retried"],
    ["interrupt", "interrupted"],
    ["cancel", "canceled"],
    ["unconfirm", "released"],
  ] as const)("after %s the holder's next call is refused with %s", async (move, reason) => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    await lifecycle.move(move, id);
    const before = await dump(lifecycle.redis);
    expect(await lifecycle.move("heartbeat", id, { fence: 1 })).toMatchObject({ kind: "lease", reason });
    expect(await dump(lifecycle.redis)).toEqual(before);
  });

  test("a result that has to be checked completes nothing before it is", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working", { has_result_schema: 1 });
    const before = await dump(lifecycle.redis);
    expect(await lifecycle.move("complete", id)).toMatchObject({ kind: "unchecked", state: "working" });
    expect(await lifecycle.move("complete", id, { fence: 2 })).toMatchObject({ kind: "no_lease" });
    expect(await dump(lifecycle.redis)).toEqual(before);
    expect(await lifecycle.move("complete", id, { checked: true })).toMatchObject({ kind: "ok" });
  });

  test("another agent's lease is unknown", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    expect(await lifecycle.move("heartbeat", id, { agent: "other" })).toMatchObject({ kind: "no_lease" });
    expect(await lifecycle.move("heartbeat", id, { agent: "scout" })).toMatchObject({ kind: "ok" });
  });

  test("a repeated reply on the lease that it ended is a duplicate, a different one is late", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("completed");
    const before = await dump(lifecycle.redis);
    expect((await lifecycle.move("complete", id)).kind).toBe("duplicate");
    expect(await lifecycle.move("complete", id, { reply_hash: "other" })).toMatchObject({
      kind: "lease",
      reason: "finished",
    });
    expect(await dump(lifecycle.redis)).toEqual(before);
  });
});

describe("tickets", () => {
  test("an old ticket is refused, however it returned", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    await lifecycle.move("release", id);
    expect((await lifecycle.move("lease", id, { ticket: 1 })).kind).toBe("ticket");
    expect((await lifecycle.move("lease", id, { ticket: 2 })).kind).toBe("ok");
  });

  test("a ticket before its time is not ready, and the refusal says when it will be", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("submitted", { delay_ms: 30_000 });
    expect(await lifecycle.move("lease", id)).toMatchObject({ kind: "not_ready" });
    lifecycle.clock.offset_ms = 30_001;
    expect(await lifecycle.move("lease", id)).toMatchObject({ kind: "ok" });
  });

  test("a paused agent and a full one get no lease", async () => {
    const lifecycle = await openLifecycle({ limits: { max_working: 1 } });
    const first = await lifecycle.inState("submitted");
    const second = await lifecycle.inState("submitted");
    await lifecycle.agents.setPaused("scout", true);
    expect(await lifecycle.move("lease", first)).toMatchObject({ kind: "blocked", why: "paused" });
    await lifecycle.agents.setPaused("scout", false);
    expect((await lifecycle.move("lease", first)).kind).toBe("ok");
    expect(await lifecycle.move("lease", second)).toMatchObject({ kind: "blocked", why: "max_working" });
    await lifecycle.move("complete", first);
    expect((await lifecycle.move("lease", second)).kind).toBe("ok");
  });
});

test("a full queue refuses new work and accepts returned work", async () => {
  const lifecycle = await openLifecycle({ limits: { max_waiting: 2 } });
  const working = await lifecycle.inState("working");
  await lifecycle.inState("submitted");
  await lifecycle.inState("submitted");
  const id = lifecycle.shards.newDelegationId("scout");
  expect((await lifecycle.move("submit", id)).kind).toBe("full");
  expect(await lifecycle.read(id)).toBeNull();
  expect((await lifecycle.move("release", working)).kind).toBe("ok");
});

describe("a holder that is refused because of its rate or the event limit", () => {
  test.each([
    ["pace", { pace_count: 100_000 }, "progress"],
    ["pace", { pace_count: 100_000 }, "artifact"],
    ["limit", { version: 10_000 }, "artifact"],
    ["limit", { event_bytes: 1_048_576 }, "artifact"],
  ] as const)("(%s, %o, %s) still extends and confirms its lease", async (why, field, move) => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("submitted");
    await lifecycle.move("lease", id, { confirm_ms: 5_000 });
    lifecycle.clock.offset_ms = 4_000;
    const key = lifecycle.shards.at(0).delegation(id);
    const now = Date.now() + lifecycle.clock.offset_ms;
    await setFields(lifecycle.redis, key, { pace_at: now, ...field });
    const before = await eventsIn(lifecycle, id);
    const refused = await lifecycle.move(move, id);
    expect(refused.kind).toBe(why);
    expect(Number(await fieldOf(lifecycle.redis, key, "lease_expires_at"))).toBe(refused.now + 60_000);
    lifecycle.clock.offset_ms = 61_000;
    expect((await lifecycle.move("due", id)).kind).toBe("not_due");
    expect(await eventsIn(lifecycle, id)).toEqual(before);
  });
});

const eventsIn = (lifecycle: TestLifecycle, id: string) => ownEvents(lifecycle.redis, id);
