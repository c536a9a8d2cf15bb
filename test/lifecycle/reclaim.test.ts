/** Reclaim: the holder of a lapsed lease has it again, as long as nothing was leased since. */
import { expect, test } from "vitest";
import type { MoveName } from "../../src/lifecycle/states.ts";
import { dump } from "../support/dump.ts";
import { openLifecycle, readFieldsOf, type TestLifecycle } from "../support/lifecycle.ts";
import { ownEvents } from "../support/own-events.ts";
import { fieldOf } from "../support/record.ts";

const artifact = { artifactId: "a", parts: [{ text: "part" }] };

/** A delegation whose lease has lapsed, with an artifact. */
async function lapsed(lifecycle: TestLifecycle, submit = {}) {
  const id = await lifecycle.inState("working", submit);
  await lifecycle.writer.move({
    ...(await lifecycle.command("artifact", id)),
    artifacts: [{ artifact }],
    shows: "artifact",
  });
  lifecycle.clock.offset_ms += 61_000;
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "lapse", state: "submitted" });
  return id;
}

const artifactsOf = async (lifecycle: TestLifecycle, id: string) =>
  JSON.parse((await lifecycle.read(id))?.json ?? "").artifacts;
const bytesOf = ({ redis, shards }: TestLifecycle, id: string) =>
  fieldOf(redis, shards.at(0).delegation(id), "bytes");

test("a reclaim gives back the attempt, and the lease for its full period; the artifacts were kept", async () => {
  const lifecycle = await openLifecycle();
  const id = await lapsed(lifecycle);
  expect(await lifecycle.move("heartbeat", id)).toMatchObject({
    kind: "lease",
    reason: "expired",
    reclaimable: true,
  });
  const before = await bytesOf(lifecycle, id);
  const done = await lifecycle.move("reclaim", id);
  expect(done).toMatchObject({ kind: "ok", state: "working", attempt: 1, fence: 1, old_ticket: 2 });
  expect((await lifecycle.read(id))?.get("lease_expires_at")).toBe(done.now + 60_000);
  expect(await artifactsOf(lifecycle, id)).toEqual([artifact]);
  expect(await bytesOf(lifecycle, id)).toBe(before);
  const texts = (await ownEvents(lifecycle.redis, id)).map(([, text]) => text);
  expect(texts.filter((text) => text.includes("artifacts_dropped"))).toEqual([]);
  expect(texts.at(-1)).toContain("\nreclaimed\n");
  expect(await lifecycle.move("complete", id)).toMatchObject({ kind: "ok", state: "completed", attempt: 1 });
});

test("the lease may lapse and be reclaimed again, and ends for the reason of its last end", async () => {
  const lifecycle = await openLifecycle({ limits: { max_attempts: 2 } });
  const id = await lapsed(lifecycle);
  for (let n = 0; n < 3; n += 1) {
    expect(await lifecycle.move("reclaim", id)).toMatchObject({ kind: "ok", attempt: 1 });
    lifecycle.clock.offset_ms += 61_000;
    expect(await lifecycle.move("due", id)).toMatchObject({ move: "lapse", attempt: 2 });
  }
  await lifecycle.move("reclaim", id);
  await lifecycle.move("release", id);
  expect(await lifecycle.move("heartbeat", id)).toMatchObject({ kind: "lease", reason: "released" });
});

test("the next lease drops the artifacts, and says so", async () => {
  const lifecycle = await openLifecycle();
  const id = await lapsed(lifecycle);
  lifecycle.clock.offset_ms += 2_000;
  expect(await lifecycle.move("lease", id)).toMatchObject({ kind: "ok", fence: 2, attempt: 2 });
  expect(await artifactsOf(lifecycle, id)).toEqual([]);
  expect(await bytesOf(lifecycle, id)).toBe("0");
  expect((await ownEvents(lifecycle.redis, id)).at(-1)?.[1]).toContain('"artifacts_dropped":true');
  for (const move of ["heartbeat", "complete", "reclaim", "release"] as const) {
    const late = await lifecycle.move(move, id, { fence: 1 });
    expect([move, late]).toEqual([move, expect.objectContaining({ kind: "lease", reason: "expired" })]);
    expect(late).not.toHaveProperty("reclaimable");
  }
});

test("after a question the artifacts stay with the next lease, also if a lease before had lapsed", async () => {
  const lifecycle = await openLifecycle();
  const id = await lapsed(lifecycle);
  await lifecycle.move("reclaim", id);
  await lifecycle.move("interrupt", id);
  await lifecycle.move("answer", id);
  await lifecycle.move("lease", id);
  expect(await artifactsOf(lifecycle, id)).toEqual([artifact]);
});

/** What may have happened to a lease, after which nobody may reclaim it. */
const OVER: Record<string, readonly (readonly [MoveName | "due" | "back", object?])[]> = {
  "a new lease": [["back"], ["lease"]],
  "a new lease that was released": [["back"], ["lease"], ["release"]],
  "a new lease that was not confirmed": [["back"], ["lease"], ["unconfirm"]],
  "a cancel": [["cancel"]],
  "the deadline": [["back", { ms: 604_800_000 }], ["due"]],
};
test.each(Object.entries(OVER))("no reclaim after %s", async (_what, steps) => {
  const lifecycle = await openLifecycle();
  const id = await lapsed(lifecycle);
  for (const [step, more = {}] of steps) {
    if (step === "back") lifecycle.clock.offset_ms += "ms" in more ? Number(more.ms) : 2_000;
    else expect(await lifecycle.move(step, id)).toMatchObject({ kind: "ok" });
  }
  const before = await dump(lifecycle.redis);
  const late = await lifecycle.move("reclaim", id, { fence: 1 });
  expect(late.kind).toBe("lease");
  expect(await dump(lifecycle.redis)).toEqual(before);
});

test.each([
  ["a release", ["release"]],
  ["a retryable failure", ["retry"]],
  ["a lease that nobody confirmed", ["unconfirm"]],
  ["an answered question", ["interrupt", "answer"]],
] as const)("no reclaim of a lease that ended by %s", async (_what, moves) => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  for (const move of moves) await lifecycle.move(move, id);
  expect(readFieldsOf(await lifecycle.read(id))).toMatchObject({ state: "submitted" });
  const late = await lifecycle.move("reclaim", id);
  expect(late).toMatchObject({ kind: "lease" });
  expect(late).not.toHaveProperty("reclaimable");
});

test("an end is never undone: the lapse of the last attempt", async () => {
  const lifecycle = await openLifecycle({ limits: { max_attempts: 1 } });
  const id = await lifecycle.inState("working");
  lifecycle.clock.offset_ms = 61_000;
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "exhaust" });
  expect(await lifecycle.move("reclaim", id)).toMatchObject({ kind: "lease", reason: "expired" });
});

test("another agent reclaims nothing, and no lease that was not granted is reclaimed", async () => {
  const lifecycle = await openLifecycle();
  const id = await lapsed(lifecycle);
  expect(await lifecycle.move("reclaim", id, { agent: "smith" })).toMatchObject({ kind: "no_lease" });
  expect(await lifecycle.move("reclaim", id, { fence: 2 })).toMatchObject({ kind: "no_lease" });
});

test("beyond the event limit a reclaim keeps the attempt spent, so that lapses and reclaims end", async () => {
  const lifecycle = await openLifecycle({ limits: { max_attempts: 2 } });
  const id = await lifecycle.inState("working");
  await lifecycle.writer.move({
    ...(await lifecycle.command("progress", id)),
    event: { progress: JSON.stringify({ message: "x".repeat(1_048_576) }) },
  });
  lifecycle.clock.offset_ms += 61_000;
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "lapse" });
  expect(await lifecycle.move("reclaim", id)).toMatchObject({ kind: "ok", attempt: 2 });
  lifecycle.clock.offset_ms += 61_000;
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "exhaust" });
});
