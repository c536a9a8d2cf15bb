import { describe, expect, test } from "vitest";
import { NUMBERS } from "../../src/lifecycle/numbers.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { openLifecycle, type TestLifecycle } from "../support/lifecycle.ts";
import { ownEvents } from "../support/own-events.ts";
import { fieldsOf, setFields } from "../support/record.ts";

const keyOf = (lifecycle: TestLifecycle, id: string) => lifecycle.shards.at(0).delegation(id);
const eventsOf = (lifecycle: TestLifecycle, id: string) => ownEvents(lifecycle.redis, id);

async function reportProgress(lifecycle: TestLifecycle, id: string, progress: string) {
  const params = { fence: (await lifecycle.read(id))?.get("fence") };
  const json = JSON.stringify({ message: progress });
  const command = {
    move: "progress",
    id,
    params,
    event: { progress: json },
    fields: { progress: json },
  } as const;
  return (await lifecycle.writer.move(command)).outcome;
}

describe("the bytes of events", () => {
  test("are bounded: beyond the bound progress is dropped, artifacts and questions are refused, and the end is not", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    const text = "x".repeat(60_000);
    let kept = 0;
    for (
      let outcome = await reportProgress(lifecycle, id, text);
      outcome.kind === "ok";
      outcome = await reportProgress(lifecycle, id, text)
    ) {
      if (outcome.progress_dropped) break;
      kept += 1;
    }
    expect(kept).toBe(Math.ceil(LIMITS.event_bytes.value / 60_025));
    const shown = (await lifecycle.read(id))?.json ?? "";
    expect(await reportProgress(lifecycle, id, "not kept")).toMatchObject({
      move: "heartbeat",
      progress_dropped: true,
    });
    expect((await lifecycle.read(id))?.json).toContain(JSON.parse(shown).progress.message);
    expect(await lifecycle.move("artifact", id)).toMatchObject({ kind: "limit", limit: "event_bytes" });
    expect(await lifecycle.move("message", id)).toMatchObject({ kind: "limit", limit: "event_bytes" });
    expect(await lifecycle.move("interrupt", id)).toMatchObject({ kind: "limit", limit: "event_bytes" });
    expect(await lifecycle.move("complete", id)).toMatchObject({ kind: "ok", state: "completed" });
  });

  test("do not count bytes that already count among the bodies", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    const said = JSON.stringify({ messageId: "m", parts: [{ text: "x".repeat(500_000) }] });
    const command = { move: "message", id, params: { message_id: "m", message_hash: "h" } } as const;
    await lifecycle.writer.move({ ...command, event: { message: said }, history: [said] });
    const { bytes, event_bytes = 0 } = await fieldsOf(lifecycle.redis, keyOf(lifecycle, id));
    expect([Number(bytes) >= said.length, Number(event_bytes) < 100]).toEqual([true, true]);
  });
});

describe("beyond the event limit", () => {
  test.each(["release", "unconfirm"] as const)(
    "each %s spends an attempt, and the last one fails",
    async (move) => {
      const lifecycle = await openLifecycle({ backoff: { initial_ms: 1_000, jitter: 0 } });
      const id = await lifecycle.inState("working");
      await setFields(lifecycle.redis, keyOf(lifecycle, id), { version: LIMITS.delegation_events.value });
      for (const attempt of [2, 3]) {
        expect(await lifecycle.move(move, id)).toMatchObject({ kind: "ok", state: "submitted", attempt });
        expect((await lifecycle.move("lease", id)).kind).toBe("ok");
      }
      expect(await lifecycle.move(move, id)).toMatchObject({ kind: "ok", move: "give_up", state: "failed" });
      const record = await lifecycle.read(id);
      expect(JSON.parse(record?.get("error") ?? "")).toMatchObject({ code: "attempts_exhausted" });
      expect((await lifecycle.move("heartbeat", id)).kind).toBe("lease");
    },
  );

  test("a lease that is not confirmed in time spends an attempt as well", async () => {
    const lifecycle = await openLifecycle({ limits: { max_attempts: 1 } });
    const id = await lifecycle.inState("submitted");
    await lifecycle.move("lease", id, { confirm_ms: 1_000 });
    await setFields(lifecycle.redis, keyOf(lifecycle, id), { version: LIMITS.delegation_events.value });
    lifecycle.clock.offset_ms = 1_001;
    expect(await lifecycle.move("due", id)).toMatchObject({ move: "give_up", state: "failed" });
  });
});

describe("returns by workers that cannot work", () => {
  const inLease = async () => {
    const lifecycle = await openLifecycle({ limits: { max_attempts: 1 }, backoff: { initial_ms: 0 } });
    const id = await lifecycle.inState("working");
    return { lifecycle, id };
  };

  test("are bounded, and the one beyond the bound fails the delegation", async () => {
    const { lifecycle, id } = await inLease();
    await setFields(lifecycle.redis, keyOf(lifecycle, id), { releases: LIMITS.returns.value - 1 });
    expect(await lifecycle.move("release", id, { unable: true })).toMatchObject({
      kind: "ok",
      state: "submitted",
    });
    await lifecycle.move("lease", id);
    const last = await lifecycle.move("release", id, { unable: true });
    expect(last).toMatchObject({ kind: "ok", move: "give_up", state: "failed" });
    expect(JSON.parse((await lifecycle.read(id))?.get("error") ?? "")).toMatchObject({
      code: "worker_unavailable",
    });
  });

  test("beyond the bound do not end a delegation that a stopping worker releases", async () => {
    const { lifecycle, id } = await inLease();
    await setFields(lifecycle.redis, keyOf(lifecycle, id), { releases: LIMITS.returns.value });
    expect(await lifecycle.move("release", id)).toMatchObject({ kind: "ok", state: "submitted" });
  });
});

test("hand-offs that fail do not count as releases; after many they back off too", async () => {
  const lifecycle = await openLifecycle({ backoff: { initial_ms: 1_000, jitter: 0 } });
  const id = await lifecycle.inState("submitted");
  const next = async (move: "release" | "unconfirm") => {
    await lifecycle.move("lease", id);
    const outcome = await lifecycle.move(move, id);
    const delay = outcome.kind === "ok" ? (outcome.ready_at ?? 0) - outcome.now : -1;
    lifecycle.clock.offset_ms += delay;
    return delay;
  };
  for (let n = 0; n < 12; n += 1) expect(await next("unconfirm")).toBe(0);
  expect(await next("release")).toBe(0);
  await setFields(lifecycle.redis, keyOf(lifecycle, id), { handoffs: NUMBERS.free_handoffs - 1 });
  expect([await next("unconfirm"), await next("unconfirm"), await next("unconfirm")]).toEqual([
    0, 1_000, 2_000,
  ]);
  expect((await lifecycle.read(id))?.get("attempt")).toBe(1);
});

test("the children of a delegation are bounded; an existing child does not count again", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  const ids = Array.from({ length: LIMITS.children.value }, (_, n) => `dlg_0_${n}`);
  await lifecycle.redis.sadd(lifecycle.shards.at(0).children(id), ...ids);
  expect(await lifecycle.move("adopt", id)).toMatchObject({ kind: "limit", limit: "children" });
  expect((await lifecycle.move("adopt", id, { child_id: "dlg_0_7" })).kind).toBe("ok");
});

describe("an event that its stream refuses", () => {
  /** The script cannot append to the key while it is a string. */
  const broken = async (
    lifecycle: TestLifecycle,
    work: () => Promise<void>,
    { events }: { readonly events: string } = lifecycle.shards.at(0),
  ) => {
    await lifecycle.redis.rename(events, "{errand:0}:aside");
    await lifecycle.redis.set(events, "no stream");
    await work();
    await lifecycle.redis.del(events);
    await lifecycle.redis.rename("{errand:0}:aside", events);
  };
  const seqs = async (lifecycle: TestLifecycle, id: string) =>
    (await eventsOf(lifecycle, id)).map(([, text]) => Number(text.split("\n")[2]));

  test("does not undo the move: the next move publishes it, in order", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    await broken(lifecycle, async () => {
      expect(await lifecycle.move("progress", id)).toMatchObject({ kind: "ok", version: 3 });
      expect(await lifecycle.move("progress", id)).toMatchObject({ kind: "ok", version: 4 });
      expect(await seqs(lifecycle, id)).toEqual([1, 2]);
    });
    expect(await lifecycle.move("complete", id)).toMatchObject({ kind: "ok", version: 5 });
    expect(await seqs(lifecycle, id)).toEqual([1, 2, 3, 4, 5]);
    expect((await eventsOf(lifecycle, id)).at(-1)?.[0]).toBe((await lifecycle.read(id))?.get("event_id"));
    expect(await lifecycle.redis.exists(lifecycle.shards.at(0).unpublished(id))).toBe(0);
  });

  test("is in the delegation's own events once, however often a feed refuses it", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    const refuse = async () => {
      expect((await lifecycle.move("progress", id)).kind).toBe("ok");
      expect((await lifecycle.move("progress", id)).kind).toBe("ok");
      expect(await seqs(lifecycle, id)).toEqual([1, 2]);
    };
    await broken(lifecycle, refuse, { events: lifecycle.shards.at(0).feed("agent:scout") });
    expect((await lifecycle.move("complete", id)).kind).toBe("ok");
    expect(await seqs(lifecycle, id)).toEqual([1, 2, 3, 4, 5]);
  });

  test("is published by a second submit of the same id, too", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    await broken(lifecycle, async () => {
      expect(await lifecycle.move("progress", id)).toMatchObject({ kind: "ok", version: 3 });
    });
    expect(await seqs(lifecycle, id)).toEqual([1, 2]);
    expect((await lifecycle.move("submit", id)).kind).toBe("exists");
    expect(await seqs(lifecycle, id)).toEqual([1, 2, 3]);
  });

  test("is published by the sweep if it is the final event", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    await broken(lifecycle, async () => {
      expect(await lifecycle.move("complete", id)).toMatchObject({ kind: "ok", state: "completed" });
      lifecycle.clock.offset_ms = NUMBERS.follow_ms + 1;
      expect((await lifecycle.move("due", id)).kind).toBe("not_due");
    });
    expect(Number(await lifecycle.redis.zscore(lifecycle.shards.at(0).due, id))).toBeLessThan(
      Date.now() + 60_000,
    );
    expect((await lifecycle.move("due", id)).kind).toBe("not_due");
    expect(await seqs(lifecycle, id)).toEqual([1, 2, 3]);
    expect(Number(await lifecycle.redis.zscore(lifecycle.shards.at(0).due, id))).toBeGreaterThan(
      Date.now() + 60_000,
    );
  });
});
