/** The timers: what happens to a delegation when nobody calls, and when. */
import { expect, test } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { dump } from "../support/dump.ts";
import { openLifecycle } from "../support/lifecycle.ts";

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

test("an unanswered question fails its delegation with the error for this question and its votes, and with no other", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("input_required");
  const due = async (params = {}) => (await lifecycle.writer.move({ move: "due", id, params })).outcome;
  lifecycle.clock.offset_ms = 86_400_001;
  const before = await dump(lifecycle.redis);
  const unanswered = {
    kind: "unanswered",
    code: "interrupt_expired",
    interrupt_id: "int_1",
    open_ms: 86_400_000,
    version: 3,
  };
  expect(await due()).toMatchObject(unanswered);
  const error = '{"code":"interrupt_expired","told":[]}';
  expect(await due({ error, code: "interrupt_expired", of_question: "int_2" })).toMatchObject(unanswered);
  expect(await due({ error, code: "deadline_exceeded", of_question: "int_1" })).toMatchObject(unanswered);
  expect(await due({ error, code: "interrupt_expired", of_question: "int_1", given: 1 })).toMatchObject(
    unanswered,
  );
  expect(await dump(lifecycle.redis)).toEqual(before);
  expect(await due({ error, code: "interrupt_expired", of_question: "int_1" })).toMatchObject({
    move: "expire",
  });
  expect((await lifecycle.read(id))?.get("error")).toBe(error);
});

test("a holder that reports all the time does not put off the end of its question", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  await lifecycle.move("hold", id);
  lifecycle.clock.offset_ms = 86_400_001;
  const due = async (params = {}) => (await lifecycle.writer.move({ move: "due", id, params })).outcome;
  expect(await due()).toMatchObject({ kind: "unanswered", interrupt_id: "int_1" });
  expect(await lifecycle.move("progress", id)).toMatchObject({ kind: "ok", version: 4 });
  const params = { error: '{"code":"interrupt_expired"}', code: "interrupt_expired", of_question: "int_1" };
  expect(await due(params)).toMatchObject({ move: "expire", state: "failed" });
});

test("the error of a question is not that of a lease", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working", { ttl_ms: 1_000 });
  lifecycle.clock.offset_ms = 1_001;
  const params = { error: '{"code":"x"}', code: "deadline_exceeded", of_question: "int_1" };
  expect((await lifecycle.writer.move({ move: "due", id, params })).outcome).toMatchObject({
    move: "expire",
  });
  expect((await lifecycle.read(id))?.get("error")).toContain("The deadline passed");
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
  expect((await lifecycle.read(id))?.get("attempt")).toBe(1);
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
  // queue still has its ticket, because this test leases without taking the ticket, and knows whose turn is next.)
  const shared = [keys.events, keys.feed("caller:alice"), keys.feed("agent:scout"), keys.turns("scout")];
  const without = (state: Record<string, unknown>) =>
    Object.fromEntries(
      Object.entries(state).filter(([key]) => !shared.includes(key) && !key.startsWith(keys.queuePrefix)),
    );
  expect(without(await dump(lifecycle.redis))).toEqual(without(before));
});
