/** Held questions: the asker keeps its lease and waits; an answer that is used is used once. */
import { expect, test } from "vitest";
import { toEntry } from "../../src/events/entry.ts";
import type { MoveName } from "../../src/lifecycle/states.ts";
import { dump } from "../support/dump.ts";
import { openLifecycle } from "../support/lifecycle.ts";
import { ownEvents } from "../support/own-events.ts";
import { fieldOf } from "../support/record.ts";

const open = async (spec = {}) => {
  const lifecycle = await openLifecycle(spec);
  const id = await lifecycle.inState("working");
  const held = await lifecycle.move("hold", id);
  expect(held).toMatchObject({ kind: "ok", state: "input_required", fence: 1 });
  return { lifecycle, id, held };
};
const shown = async ({ read }: Awaited<ReturnType<typeof openLifecycle>>, id: string) =>
  JSON.parse((await read(id))?.json ?? "");

test("the lease goes on, and everybody sees who waits", async () => {
  const { lifecycle, id, held } = await open();
  expect(held).toMatchObject({ lease_expires_at: held.now + 60_000 });
  expect(await shown(lifecycle, id)).toMatchObject({
    state: "input_required",
    interrupt: { id: "int_1" },
    lease: { worker_id: "w" },
  });
  lifecycle.clock.offset_ms = 50_000;
  expect(await lifecycle.move("heartbeat", id)).toMatchObject({ kind: "ok", state: "input_required" });
  lifecycle.clock.offset_ms = 100_000;
  expect((await lifecycle.move("due", id)).kind).toBe("not_due");
});

test("the answer goes to the holder: no ticket, the same lease, the same attempt", async () => {
  const { lifecycle, id } = await open();
  expect(await lifecycle.move("answer", id)).toMatchObject({
    kind: "ok",
    move: "hand_over",
    state: "working",
    ticket: 1,
    fence: 1,
    attempt: 1,
  });
  expect(await shown(lifecycle, id)).toMatchObject({ interrupt: null, lease: { worker_id: "w" } });
  expect(await lifecycle.move("hold", id)).toMatchObject({ kind: "answered", interrupt_id: "int_1" });
  expect(await lifecycle.move("complete", id)).toMatchObject({ kind: "ok", state: "completed" });
  const statuses = (await ownEvents(lifecycle.redis, id)).map(([, text]) => text.split("\n")[5]);
  expect(statuses).toEqual(["queued", "leased", "interrupted", "answered", ""]);
});

test("asked again while it is held, it is the same question, and the lease is extended", async () => {
  const { lifecycle, id } = await open();
  lifecycle.clock.offset_ms = 40_000;
  const again = await lifecycle.move("hold", id);
  expect(again).toMatchObject({ kind: "duplicate", interrupt_id: "int_1" });
  expect(again).toMatchObject({ lease_expires_at: again.now + 60_000 });
  expect(await lifecycle.move("hold", id, { interrupt_id: "int_2" })).toMatchObject({ kind: "state" });
});

test.each([["park_question"], ["release"], ["interrupt"]] as const)(
  "%s: the question stays open without a lease, and its answer makes a ticket",
  async (move) => {
    const { lifecycle, id } = await open();
    expect(await lifecycle.move(move, id)).toMatchObject({
      kind: "ok",
      move: "park_question",
      state: "input_required",
    });
    expect(await shown(lifecycle, id)).toMatchObject({ interrupt: { id: "int_1" }, lease: null });
    for (const late of ["heartbeat", "complete", "release", "park_question"] as const)
      expect(await lifecycle.move(late, id)).toMatchObject({ kind: "lease", reason: "interrupted" });
    expect(await lifecycle.move("answer", id)).toMatchObject({
      move: "answer",
      state: "submitted",
      ticket: 2,
    });
    expect(await lifecycle.move("lease", id)).toMatchObject({ state: "working", fence: 2, attempt: 1 });
  },
);

test("a holder that is silent loses the lease, and no attempt is spent; an outage gives it time", async () => {
  const { lifecycle, id } = await open();
  lifecycle.clock.offset_ms = 61_000;
  const keys = lifecycle.shards.at(0);
  const from = (await lifecycle.read(id))?.get("lease_granted_at") ?? 0;
  await lifecycle.redis.rpush(keys.outages, `${from} ${from + 60_500}`);
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "grace", state: "input_required" });
  lifecycle.clock.offset_ms = 125_000;
  expect(await lifecycle.move("due", id)).toMatchObject({
    move: "park_question",
    state: "input_required",
    attempt: 1,
  });
  expect(await lifecycle.move("heartbeat", id)).toMatchObject({ kind: "lease", reason: "interrupted" });
});

test.each([
  { after: "before the lease ends", ms: 59_000, outage: false, move: "hand_over", state: "working" },
  { after: "after it, before the sweep", ms: 61_000, outage: false, move: "answer", state: "submitted" },
  {
    after: "after it, which was in an outage",
    ms: 61_000,
    outage: true,
    move: "hand_over",
    state: "working",
  },
])("an answer $after is a $move", async ({ ms, outage, move, state }) => {
  const { lifecycle, id } = await open();
  lifecycle.clock.offset_ms = ms;
  const from = (await lifecycle.read(id))?.get("lease_granted_at") ?? 0;
  if (outage) await lifecycle.redis.rpush(lifecycle.shards.at(0).outages, `${from} ${from + 60_500}`);
  expect(await lifecycle.move("answer", id)).toMatchObject({ kind: "ok", move, state });
  const late = await lifecycle.move("heartbeat", id);
  expect(late).toMatchObject(state === "working" ? { kind: "ok" } : { kind: "lease", reason: "interrupted" });
  expect((await lifecycle.read(id))?.get("attempt")).toBe(1);
});

test.each(["complete", "reject", "fail", "retry", "cancel", "progress", "artifact"] as const)(
  "the holder may %s while its question is held; the end closes the question",
  async (move) => {
    const { lifecycle, id } = await open();
    const made = await lifecycle.move(move, id);
    expect(made).toMatchObject({ kind: "ok", move });
    const { state, interrupt } = await shown(lifecycle, id);
    expect([state, interrupt !== null]).toEqual(
      move === "progress" || move === "artifact" ? ["input_required", true] : [expect.any(String), false],
    );
    expect((await lifecycle.move("answer", id)).kind).toBe(interrupt ? "ok" : "no_question");
  },
);

test("without a lease nobody works on an asked delegation", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("input_required");
  const before = await dump(lifecycle.redis);
  for (const move of [
    "heartbeat",
    "progress",
    "artifact",
    "complete",
    "fail",
    "release",
    "park_question",
  ] as MoveName[])
    expect([move, await lifecycle.move(move, id)]).toEqual([
      move,
      expect.objectContaining({ kind: "lease", reason: "interrupted" }),
    ]);
  expect(await dump(lifecycle.redis)).toEqual(before);
});

test("the event that asks people about a held question shows it, and until when its worker waits", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  await lifecycle.move("hold", id);
  const [, asked = ""] = (await ownEvents(lifecycle.redis, id)).at(-1) ?? [];
  expect(await lifecycle.move("ask_people", id, { interrupt_id: "int_2" })).toMatchObject({
    kind: "no_question",
  });
  expect(await lifecycle.move("ask_people", id)).toMatchObject({ kind: "ok", state: "input_required" });
  const [, again = ""] = (await ownEvents(lifecycle.redis, id)).at(-1) ?? [];
  const shown = (text: string) => JSON.parse(`{${toEntry(0, "0-0", ["e", text]).more}}`);
  expect(shown(again)).toEqual({ ...shown(asked), again: true });
  expect(await lifecycle.move("heartbeat", id)).toMatchObject({ kind: "ok" });
});

test("a held question expires as any other, and ends the lease", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  await lifecycle.move("hold", id, { interrupt_ttl_ms: 30_000 });
  lifecycle.clock.offset_ms = 30_001;
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "expire", state: "failed" });
  expect(await lifecycle.move("heartbeat", id)).toMatchObject({ kind: "lease", reason: "expired" });
});

test("an answer is used by one call, however often it is repeated, and by none of a later lease", async () => {
  const { lifecycle, id } = await open();
  const answers = JSON.stringify({ a: { decision: "approve" }, b: { decision: "deny" } });
  await lifecycle.move("answer", id, { answers });
  const use = (more: object) => lifecycle.move("use", id, { request_id: "a", use_key: "k1", ...more });
  for (let n = 0; n < 2; n += 1) expect(await use({})).toMatchObject({ kind: "ok", move: "use", answers });
  const version = (await lifecycle.read(id))?.get("version");
  expect(await use({ use_key: "k2" })).toMatchObject({ kind: "used", version });
  expect(await use({ request_id: "b", use_key: "k2" })).toMatchObject({ kind: "ok" });
  expect(await use({ request_id: "c" })).toMatchObject({ kind: "no_question" });
  expect(await use({ interrupt_id: "int_2" })).toMatchObject({ kind: "no_question" });
  lifecycle.clock.offset_ms = 61_000;
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "lapse" });
  lifecycle.clock.offset_ms = 65_000;
  expect(await lifecycle.move("lease", id)).toMatchObject({ fence: 2 });
  expect(await use({ fence: 1 })).toMatchObject({ kind: "lease", reason: "expired" });
  expect(await use({})).toMatchObject({ kind: "used" });
  expect(await use({ request_id: "b", use_key: "k2" })).toMatchObject({ kind: "used" });
});

test("a lease that went on after the answer, and lapsed, ended by no question", async () => {
  const { lifecycle, id } = await open();
  await lifecycle.move("answer", id);
  lifecycle.clock.offset_ms = 61_000;
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "lapse" });
  expect(await lifecycle.move("hold", id)).toMatchObject({
    kind: "lease",
    reason: "expired",
    reclaimable: true,
  });
  await lifecycle.move("reclaim", id);
  expect(await lifecycle.move("hold", id)).toMatchObject({ kind: "answered" });
});

test("what comes with the end of the wait is stored, and nothing of the question twice", async () => {
  const { lifecycle, id } = await open();
  const before = await shown(lifecycle, id);
  const parts = [{ text: "draft" }];
  await lifecycle.writer.move({
    ...(await lifecycle.command("interrupt", id)),
    fields: { checkpoint: '{"n":2}' },
    history: ['{"messageId":"q"}'],
    artifacts: [{ artifact: { artifactId: "a", parts } }],
    shows: "artifacts",
    bytes: 1_000,
  });
  const after = await shown(lifecycle, id);
  expect([after.lease, after.history, after.artifacts]).toEqual([
    null,
    before.history,
    [{ artifactId: "a", parts }],
  ]);
  expect((await lifecycle.read(id))?.get("checkpoint")).toBe('{"n":2}');
  const key = lifecycle.shards.at(0).delegation(id);
  expect(Number(await fieldOf(lifecycle.redis, key, "bytes"))).toBeLessThan(200);
});

test("a question keeps as many bytes of its delegator's share if it is held", async () => {
  const kept = await Promise.all(
    (["interrupt", "hold"] as const).map(async (move) => {
      const lifecycle = await openLifecycle();
      const id = await lifecycle.inState("working");
      await lifecycle.writer.move({ ...(await lifecycle.command(move, id)), bytes: 1_000 });
      return fieldOf(lifecycle.redis, lifecycle.shards.at(0).delegation(id), "kept");
    }),
  );
  expect(kept[0]).toBe(kept[1]);
});

test("an answer long after the lease, which an outage extended no longer, is no hand-over", async () => {
  const { lifecycle, id } = await open();
  const from = (await lifecycle.read(id))?.get("lease_granted_at") ?? 0;
  await lifecycle.redis.rpush(lifecycle.shards.at(0).outages, `${from + 30_000} ${from + 40_000}`);
  lifecycle.clock.offset_ms = 99_000;
  expect(await lifecycle.move("heartbeat", id)).toMatchObject({ kind: "ok" });
  lifecycle.clock.offset_ms = 250_000;
  expect(await lifecycle.move("answer", id)).toMatchObject({
    move: "answer",
    state: "submitted",
    attempt: 1,
  });
});

test("while a question is held, an answer before it may be read and used", async () => {
  const { lifecycle, id } = await open();
  await lifecycle.move("answer", id, { answers: '{"r":{}}' });
  const interrupt = '{"id":"int_2","kind":"input","requests":[]}';
  await lifecycle.move("hold", id, { interrupt_id: "int_2", interrupt, reply_hash: "2" });
  expect(await lifecycle.move("hold", id)).toMatchObject({ kind: "answered", interrupt_id: "int_1" });
  expect(await lifecycle.move("use", id)).toMatchObject({ kind: "ok", state: "input_required" });
});

test("a question whose id depends on earlier answers is found by its body", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  await lifecycle.move("hold", id, { reply_hash: "same" });
  await lifecycle.move("answer", id);
  const again = { interrupt_id: "int_2", reply_hash: "same" };
  expect(await lifecycle.move("hold", id, again)).toMatchObject({ kind: "answered", interrupt_id: "int_1" });
});
