import { describe, expect, test } from "vitest";
import type { Command } from "../../src/lifecycle/command.ts";
import { client, startBroker } from "../support/broker.ts";
import { dump } from "../support/dump.ts";
import { openLifecycle, type TestLifecycle } from "../support/lifecycle.ts";

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

  test("the ticket of a waiting delegation is checked at growing intervals", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("submitted");
    const looks: number[] = [];
    for (let at = 0; at < 3_600_000; at += 5_000) {
      lifecycle.clock.offset_ms = at;
      if ((await lifecycle.move("due", id)).kind === "check") looks.push(at);
    }
    expect(looks.length).toBeGreaterThan(5);
    expect(looks.length).toBeLessThan(25);
  });
});

describe("time", () => {
  test("a lapsed lease queues the next attempt with backoff, until no attempt is left", async () => {
    const lifecycle = await openLifecycle({ backoff: { jitter: 0 } });
    const id = await lifecycle.inState("working");
    lifecycle.clock.offset_ms = 60_500;
    const first = await lifecycle.move("due", id);
    expect(first).toMatchObject({ move: "lapse", attempt: 2, state: "submitted" });
    expect(first.kind === "ok" && (first.ready_at ?? 0) - first.now).toBe(1_000);
    lifecycle.clock.offset_ms += 1_000;
    await lifecycle.move("lease", id);
    lifecycle.clock.offset_ms += 61_000;
    const second = await lifecycle.move("due", id);
    expect(second.kind === "ok" && (second.ready_at ?? 0) - second.now).toBe(2_000);
    lifecycle.clock.offset_ms += 2_000;
    await lifecycle.move("lease", id);
    lifecycle.clock.offset_ms += 61_000;
    expect(await lifecycle.move("due", id)).toMatchObject({ move: "exhaust", state: "failed" });
    expect(JSON.parse((await lifecycle.read(id))?.json ?? "")).toMatchObject({
      error: { code: "attempts_exhausted", category: "UPSTREAM", retryable: false },
      attempt: 3,
    });
  });

  test("an unconfirmed lease is returned at once; any call confirms", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("submitted");
    await lifecycle.move("lease", id, { confirm_ms: 5_000 });
    lifecycle.clock.offset_ms = 5_001;
    expect(await lifecycle.move("due", id)).toMatchObject({
      move: "unconfirm",
      attempt: 1,
      state: "submitted",
    });
    await lifecycle.move("lease", id, { confirm_ms: 5_000 });
    await lifecycle.move("heartbeat", id);
    lifecycle.clock.offset_ms += 5_001;
    expect((await lifecycle.move("due", id)).kind).toBe("not_due");
  });

  test.each([
    ["submitted", { start_within_ms: 1_000 }, 1_001, "not_picked_up"],
    ["submitted", { ttl_ms: 1_000 }, 1_001, "deadline_exceeded"],
    ["working", { ttl_ms: 1_000 }, 1_001, "deadline_exceeded"],
    ["input_required", {}, 86_400_001, "interrupt_expired"],
    ["auth_required", { ttl_ms: 1_000 }, 1_001, "deadline_exceeded"],
  ] as const)("%s with %o fails after %i ms as %s", async (state, submit, after, code) => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState(state, submit);
    expect((await lifecycle.move("due", id)).kind).toBe("not_due");
    lifecycle.clock.offset_ms = after;
    expect(await lifecycle.move("due", id)).toMatchObject({ kind: "ok", move: "expire", state: "failed" });
    const shown = JSON.parse((await lifecycle.read(id))?.json ?? "");
    expect(shown.error).toMatchObject({ code, category: "TIMEOUT" });
  });

  test.each([
    [{ ttl_ms: 60_000 }, {}],
    [{ ttl_ms: 60_000 }, { interrupt_ttl_ms: 3_600_000 }],
  ])("a question expires with the delegation at the latest: %o, %o", async (submit, more) => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("submitted", submit);
    await lifecycle.move("lease", id);
    await lifecycle.move("interrupt", id, more);
    const { interrupt, deadline_at } = JSON.parse((await lifecycle.read(id))?.json ?? "");
    expect(interrupt.expires_at).toBe(deadline_at);
  });

  test("by default a delegation lives for seven days and a question for one", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id, created_at, deadline_at } = (await api.delegate("scout")).body;
    expect(Date.parse(deadline_at) - Date.parse(created_at)).toBe(604_800_000);
    await api.interrupt((await api.lease("scout")).body.leases[0].lease_id);
    const { raised_at, expires_at } = (await api.get(id)).body.interrupt;
    expect(Date.parse(expires_at) - Date.parse(raised_at)).toBe(86_400_000);
  });

  test("a first lease in time ends start_within_seconds for good", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("submitted", { start_within_ms: 1_000 });
    await lifecycle.move("lease", id);
    await lifecycle.move("release", id);
    lifecycle.clock.offset_ms = 1_500;
    expect((await lifecycle.move("due", id)).kind).toBe("not_due");
  });

  test("releases are free ten times, then they back off", async () => {
    const lifecycle = await openLifecycle({ backoff: { jitter: 0 } });
    const id = await lifecycle.inState("submitted");
    const delays: number[] = [];
    for (let round = 0; round < 13; round += 1) {
      await lifecycle.move("lease", id);
      const outcome = await lifecycle.move("release", id);
      const delay = outcome.kind === "ok" ? (outcome.ready_at ?? 0) - outcome.now : -1;
      delays.push(delay);
      lifecycle.clock.offset_ms += delay;
    }
    expect(delays).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1_000, 2_000, 4_000]);
    expect((await lifecycle.read(id))?.attempt).toBe(1);
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

test("the error of a failed attempt is in its event, and not on the live record", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  expect(await lifecycle.move("fail", id, { retryable: true })).toMatchObject({ move: "retry", attempt: 2 });
  expect(JSON.parse((await lifecycle.read(id))?.json ?? "").error).toBeNull();
});

test("a finished delegation is deleted after the retention time with everything stored of it", async () => {
  const lifecycle = await openLifecycle();
  const live = await lifecycle.inState("submitted");
  const before = await dump(lifecycle.redis);
  const done = await lifecycle.inState("completed");
  const keys = lifecycle.shards.at(0);
  expect(await lifecycle.redis.zrange(keys.list("delegator:caller:alice"), "0", "-1")).toEqual([live, done]);
  lifecycle.clock.offset_ms = 3_599_000;
  expect((await lifecycle.move("due", done)).kind).toBe("not_due");
  lifecycle.clock.offset_ms = 3_601_000;
  expect((await lifecycle.move("due", done)).kind).toBe("removed");
  expect(await lifecycle.read(done)).toBeNull();
  // Streams with other readers keep the events until their own retention ends; everything else is as before. (The
  // queue still has its ticket, because this test leases without taking the ticket.)
  const shared = [keys.events, keys.feed("caller:alice"), keys.feed("agent:scout")];
  const without = (state: Record<string, unknown>) =>
    Object.fromEntries(
      Object.entries(state).filter(([key]) => !shared.includes(key) && !key.startsWith(keys.queuePrefix)),
    );
  expect(without(await dump(lifecycle.redis))).toEqual(without(before));
});

const artifactOf = (artifactId: string, text: string) => ({ artifactId, parts: [{ text }] });
const shownOf = async (lifecycle: TestLifecycle, id: string) =>
  JSON.parse((await lifecycle.read(id))?.json ?? "");

/** Sends artifacts on the live lease. */
async function send(lifecycle: TestLifecycle, id: string, artifacts: Command["artifacts"]): Promise<string> {
  const params = { fence: (await lifecycle.read(id))?.fence };
  return (await lifecycle.writer.move({ move: "artifact", id, params, ...(artifacts && { artifacts }) }))
    .outcome.kind;
}

describe("artifacts", () => {
  const MB = "x".repeat(1_000_000);

  test("count with all bodies of their delegation; a refused one changes nothing", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    for (const name of ["a", "b", "c"])
      expect(await send(lifecycle, id, [{ artifact: artifactOf(name, MB) }])).toBe("ok");
    const before = await dump(lifecycle.redis);
    expect(await send(lifecycle, id, [{ artifact: artifactOf("d", MB) }])).toBe("too_large");
    expect(await send(lifecycle, id, [{ artifact: artifactOf("a", MB), append: true }])).toBe("too_large");
    expect(await dump(lifecycle.redis)).toEqual(before);
  });

  test("do not count any more once they are replaced, and nothing of them is kept", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    await send(lifecycle, id, [{ artifact: artifactOf("b", "second") }]);
    for (let n = 0; n < 6; n += 1) {
      expect(await send(lifecycle, id, [{ artifact: artifactOf("a", MB) }])).toBe("ok");
      expect(await send(lifecycle, id, [{ artifact: artifactOf("a", MB), append: true }])).toBe("ok");
    }
    await send(lifecycle, id, [
      { artifact: artifactOf("b", "first") },
      { artifact: artifactOf("a", "last") },
    ]);
    expect((await shownOf(lifecycle, id)).artifacts).toEqual([
      artifactOf("b", "first"),
      artifactOf("a", "last"),
    ]);
    const bytes = [artifactOf("b", "first"), artifactOf("a", "last")].map(
      (one) => JSON.stringify(one).length,
    );
    const stored = await lifecycle.redis.hget(lifecycle.shards.at(0).delegation(id), "bytes");
    expect(Number(stored)).toBe(bytes.reduce((a, b) => a + b));
    const kept = await lifecycle.redis.hvals(lifecycle.shards.at(0).artifacts(id));
    expect(kept.join("").length).toBeLessThan(500);
  });

  test("with one id in one move are one artifact: the last, or all appended parts", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    await send(lifecycle, id, [{ artifact: artifactOf("a", "1") }, { artifact: artifactOf("a", "2") }]);
    expect((await shownOf(lifecycle, id)).artifacts).toEqual([artifactOf("a", "2")]);
    const more = ["3", "4"].map((text) => ({ artifact: artifactOf("a", text), append: true }));
    await send(lifecycle, id, more);
    const parts = ["2", "3", "4"].map((text) => ({ text }));
    expect((await shownOf(lifecycle, id)).artifacts).toEqual([{ artifactId: "a", parts }]);
    expect(Number(await lifecycle.redis.hget(lifecycle.shards.at(0).delegation(id), "bytes"))).toBe(
      ["2", "3", "4"].map((text) => JSON.stringify(artifactOf("a", text)).length).reduce((a, b) => a + b),
    );
  });

  test.each([
    [
      "lapse",
      async (lifecycle: TestLifecycle, id: string) => {
        lifecycle.clock.offset_ms += 61_000;
        expect(await lifecycle.move("due", id)).toMatchObject({ move: "lapse" });
      },
    ],
    [
      "retry",
      async (lifecycle: TestLifecycle, id: string) => {
        expect(await lifecycle.move("fail", id, { retryable: true })).toMatchObject({ move: "retry" });
      },
    ],
    ["release", (lifecycle: TestLifecycle, id: string) => lifecycle.move("release", id)],
    ["unconfirm", (lifecycle: TestLifecycle, id: string) => lifecycle.move("unconfirm", id)],
  ] as const)("of an attempt that ends by %s are dropped, and do not count any more", async (_move, end) => {
    const lifecycle = await openLifecycle({ backoff: { jitter: 0 } });
    const id = await lifecycle.inState("working");
    for (const name of ["a", "b", "c"]) await send(lifecycle, id, [{ artifact: artifactOf(name, MB) }]);
    await end(lifecycle, id);
    expect((await shownOf(lifecycle, id)).artifacts).toEqual([]);
    expect(await lifecycle.redis.exists(lifecycle.shards.at(0).artifacts(id))).toBe(0);
    expect(await lifecycle.redis.hget(lifecycle.shards.at(0).delegation(id), "bytes")).toBe("0");
    lifecycle.clock.offset_ms += 2_000;
    await lifecycle.move("lease", id);
    for (const name of ["d", "e", "f"])
      expect(await send(lifecycle, id, [{ artifact: artifactOf(name, MB) }])).toBe("ok");
    expect((await shownOf(lifecycle, id)).artifacts).toHaveLength(3);
    await lifecycle.move("release", id);
    expect(await lifecycle.redis.hget(lifecycle.shards.at(0).delegation(id), "bytes")).toBe("0");
  });

  test("survive a question and its answer, an unconfirmed lease, and the end", async () => {
    const lifecycle = await openLifecycle({ limits: { max_attempts: 1 } });
    const id = await lifecycle.inState("working");
    await send(lifecycle, id, [{ artifact: artifactOf("a", "1") }]);
    await lifecycle.move("interrupt", id);
    await lifecycle.move("answer", id);
    await lifecycle.move("lease", id);
    await lifecycle.move("unconfirm", id);
    await lifecycle.move("lease", id);
    expect((await shownOf(lifecycle, id)).artifacts).toEqual([artifactOf("a", "1")]);
    lifecycle.clock.offset_ms += 61_000;
    expect(await lifecycle.move("due", id)).toMatchObject({ move: "exhaust" });
    expect((await shownOf(lifecycle, id)).artifacts).toEqual([artifactOf("a", "1")]);
  });
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
    await lifecycle.redis.hset(key, { pace_at: now, ...field });
    const before = await eventsIn(lifecycle, id);
    const refused = await lifecycle.move(move, id);
    expect(refused.kind).toBe(why);
    expect(Number(await lifecycle.redis.hget(key, "lease_expires_at"))).toBe(refused.now + 60_000);
    lifecycle.clock.offset_ms = 61_000;
    expect((await lifecycle.move("due", id)).kind).toBe("not_due");
    expect(await eventsIn(lifecycle, id)).toEqual(before);
  });
});

const eventsIn = (lifecycle: TestLifecycle, id: string) =>
  lifecycle.redis.xrange(lifecycle.shards.at(0).delegationEvents(id), "-", "+");
