import { describe, expect, test } from "vitest";
import { NUMBERS } from "../../src/lifecycle/numbers.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { type Desk, openDesk } from "../support/desk.ts";

const keyOf = (desk: Desk, id: string) => desk.shards.at(0).delegation(id);
const eventsOf = (desk: Desk, id: string) =>
  desk.redis.xrange(desk.shards.at(0).delegationEvents(id), "-", "+");

async function say(desk: Desk, id: string, progress: string) {
  const params = { fence: (await desk.read(id))?.fence };
  const json = JSON.stringify({ message: progress });
  const command = {
    move: "progress",
    id,
    params,
    event: { progress: json },
    fields: { progress: json },
  } as const;
  return (await desk.writer.move(command)).outcome;
}

describe("the bytes of events", () => {
  test("are bounded: beyond the bound progress is dropped, artifacts and questions are refused, and the end is not", async () => {
    const desk = await openDesk();
    const id = await desk.inState("working");
    const text = "x".repeat(60_000);
    let kept = 0;
    for (
      let outcome = await say(desk, id, text);
      outcome.kind === "ok";
      outcome = await say(desk, id, text)
    ) {
      if (outcome.progress_dropped) break;
      kept += 1;
    }
    expect(kept).toBe(Math.ceil(LIMITS.event_bytes.value / 60_025));
    const shown = (await desk.read(id))?.json ?? "";
    expect(await say(desk, id, "not kept")).toMatchObject({ move: "heartbeat", progress_dropped: true });
    expect((await desk.read(id))?.json).toContain(JSON.parse(shown).progress.message);
    expect(await desk.move("artifact", id)).toMatchObject({ kind: "limit", limit: "event_bytes" });
    expect(await desk.move("message", id)).toMatchObject({ kind: "limit", limit: "event_bytes" });
    expect(await desk.move("interrupt", id)).toMatchObject({ kind: "limit", limit: "event_bytes" });
    expect(await desk.move("complete", id)).toMatchObject({ kind: "ok", state: "completed" });
  });

  test("do not count bytes that already count among the bodies", async () => {
    const desk = await openDesk();
    const id = await desk.inState("working");
    const said = JSON.stringify({ messageId: "m", parts: [{ text: "x".repeat(500_000) }] });
    const command = { move: "message", id, params: { message_id: "m", message_hash: "h" } } as const;
    await desk.writer.move({ ...command, event: { message: said }, history: [said] });
    const [bytes, event_bytes] = await desk.redis.hmget(keyOf(desk, id), "bytes", "event_bytes");
    expect([Number(bytes) >= said.length, Number(event_bytes) < 100]).toEqual([true, true]);
  });
});

describe("beyond the event limit", () => {
  test.each(["release", "unconfirm"] as const)(
    "each %s spends an attempt, and the last one fails",
    async (move) => {
      const desk = await openDesk({ backoff: { initial_ms: 1_000, jitter: 0 } });
      const id = await desk.inState("working");
      await desk.redis.hset(keyOf(desk, id), "version", LIMITS.delegation_events.value);
      for (const attempt of [2, 3]) {
        expect(await desk.move(move, id)).toMatchObject({ kind: "ok", state: "submitted", attempt });
        expect((await desk.move("lease", id)).kind).toBe("ok");
      }
      expect(await desk.move(move, id)).toMatchObject({ kind: "ok", move: "give_up", state: "failed" });
      const record = await desk.read(id);
      expect(JSON.parse(record?.error ?? "")).toMatchObject({ code: "attempts_exhausted" });
      expect((await desk.move("heartbeat", id)).kind).toBe("lease");
    },
  );

  test("a lease that is not confirmed in time spends an attempt as well", async () => {
    const desk = await openDesk({ limits: { max_attempts: 1 } });
    const id = await desk.inState("submitted");
    await desk.move("lease", id, { confirm_ms: 1_000 });
    await desk.redis.hset(keyOf(desk, id), "version", LIMITS.delegation_events.value);
    desk.clock.offset_ms = 1_001;
    expect(await desk.move("due", id)).toMatchObject({ move: "give_up", state: "failed" });
  });
});

test("hand-offs that fail do not count as releases; after many they back off too", async () => {
  const desk = await openDesk({ backoff: { initial_ms: 1_000, jitter: 0 } });
  const id = await desk.inState("submitted");
  const next = async (move: "release" | "unconfirm") => {
    await desk.move("lease", id);
    const outcome = await desk.move(move, id);
    const delay = outcome.kind === "ok" ? (outcome.ready_at ?? 0) - outcome.now : -1;
    desk.clock.offset_ms += delay;
    return delay;
  };
  for (let n = 0; n < 12; n += 1) expect(await next("unconfirm")).toBe(0);
  expect(await next("release")).toBe(0);
  await desk.redis.hset(keyOf(desk, id), "handoffs", NUMBERS.free_handoffs - 1);
  expect([await next("unconfirm"), await next("unconfirm"), await next("unconfirm")]).toEqual([
    0, 1_000, 2_000,
  ]);
  expect((await desk.read(id))?.attempt).toBe(1);
});

test("the children of a delegation are bounded; an existing child does not count again", async () => {
  const desk = await openDesk();
  const id = await desk.inState("working");
  const ids = Array.from({ length: LIMITS.children.value }, (_, n) => `dlg_0_${n}`);
  await desk.redis.sadd(desk.shards.at(0).children(id), ...ids);
  expect(await desk.move("adopt", id)).toMatchObject({ kind: "limit", limit: "children" });
  expect((await desk.move("adopt", id, { child_id: "dlg_0_7" })).kind).toBe("ok");
});

describe("an event that its stream refuses", () => {
  /** The script cannot append to the key while it is a string. */
  const broken = async (desk: Desk, work: () => Promise<void>) => {
    const { events } = desk.shards.at(0);
    await desk.redis.rename(events, "{errand:0}:aside");
    await desk.redis.set(events, "no stream");
    await work();
    await desk.redis.del(events);
    await desk.redis.rename("{errand:0}:aside", events);
  };
  const seqs = async (desk: Desk, id: string) =>
    (await eventsOf(desk, id)).map(([, [, text = ""]]) => Number(text.split("\n")[2]));

  test("does not undo the move: the next move publishes it, in order", async () => {
    const desk = await openDesk();
    const id = await desk.inState("working");
    await broken(desk, async () => {
      expect(await desk.move("progress", id)).toMatchObject({ kind: "ok", version: 3 });
      expect(await desk.move("progress", id)).toMatchObject({ kind: "ok", version: 4 });
      expect(await seqs(desk, id)).toEqual([1, 2]);
    });
    expect(await desk.move("complete", id)).toMatchObject({ kind: "ok", version: 5 });
    expect(await seqs(desk, id)).toEqual([1, 2, 3, 4, 5]);
    expect((await eventsOf(desk, id)).at(-1)?.[0]).toBe((await desk.read(id))?.event_id);
    expect(await desk.redis.exists(desk.shards.at(0).unpublished(id))).toBe(0);
  });

  test("is published by a second submit of the same id, too", async () => {
    const desk = await openDesk();
    const id = await desk.inState("working");
    await broken(desk, async () => {
      expect(await desk.move("progress", id)).toMatchObject({ kind: "ok", version: 3 });
    });
    expect(await seqs(desk, id)).toEqual([1, 2]);
    expect((await desk.move("submit", id)).kind).toBe("exists");
    expect(await seqs(desk, id)).toEqual([1, 2, 3]);
  });

  test("is published by the sweep if it is the final event", async () => {
    const desk = await openDesk();
    const id = await desk.inState("working");
    await broken(desk, async () => {
      expect(await desk.move("complete", id)).toMatchObject({ kind: "ok", state: "completed" });
      desk.clock.offset_ms = NUMBERS.follow_ms + 1;
      expect((await desk.move("due", id)).kind).toBe("not_due");
    });
    expect(Number(await desk.redis.zscore(desk.shards.at(0).due, id))).toBeLessThan(Date.now() + 60_000);
    expect((await desk.move("due", id)).kind).toBe("not_due");
    expect(await seqs(desk, id)).toEqual([1, 2, 3]);
    expect(Number(await desk.redis.zscore(desk.shards.at(0).due, id))).toBeGreaterThan(Date.now() + 60_000);
  });
});
