/** Grace: what an outage of the broker takes from a lease is given back. See also test/engine/upkeep/outages.test.ts. */
import { expect, test } from "vitest";
import { LIMITS } from "../../src/schema/limits.ts";
import { openLifecycle, type TestLifecycle } from "../support/lifecycle.ts";
import { outage } from "../support/outage.ts";
import { ownEvents } from "../support/own-events.ts";

/** Records an outage from and to these seconds after `start`, and moves the clock to its end. */
async function away({ redis, shards, clock }: TestLifecycle, start: number, from: number, to: number) {
  await redis.rpush(shards.at(0).outages, `${start + from * 1000} ${start + to * 1000}`);
  clock.offset_ms = to * 1000;
}

async function grantedAt(lifecycle: TestLifecycle, id: string): Promise<number> {
  return (await lifecycle.read(id))?.get("lease_granted_at") ?? 0;
}

// The lease lasts 60 s, from 0.
test.each([
  [
    "before it expires, and returns after",
    [30, 70],
    { kind: "ok", move: "grace", state: "working", attempt: 1 },
  ],
  ["for long", [59, 100_000], { kind: "ok", move: "grace", attempt: 1 }],
  ["after it has expired", [61, 70], { kind: "ok", move: "lapse", attempt: 2 }],
] as const)("the broker goes away %s", async (_what, [from, to], expected) => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  const start = await grantedAt(lifecycle, id);
  await away(lifecycle, start, from, to);
  lifecycle.clock.offset_ms += 500;
  expect(await lifecycle.move("due", id)).toMatchObject(expected);
  if (expected.move !== "grace") return;
  const expires = (await lifecycle.read(id))?.get("lease_expires_at");
  expect(expires).toBe(start + (to + 60) * 1000);
  const event = (await ownEvents(lifecycle.redis, id)).at(-1)?.[1] ?? "";
  expect(event).toContain("\nbroker_away\n");
  expect(event).toContain(`"expires_at":"${new Date(expires ?? 0).toISOString()}"`);
});

test("a lease that still runs after an outage gets what is missing of a period when it expires, once", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  const start = await grantedAt(lifecycle, id);
  await away(lifecycle, start, 10, 20);
  expect((await lifecycle.move("due", id)).kind).toBe("not_due");
  lifecycle.clock.offset_ms = 60_500;
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "grace" });
  expect((await lifecycle.read(id))?.get("lease_expires_at")).toBe(start + 80_000);
  lifecycle.clock.offset_ms = 80_500;
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "lapse", attempt: 2 });
});

test("a lease whose holder called after the outage lapses as usual", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  await away(lifecycle, await grantedAt(lifecycle, id), 30, 70);
  lifecycle.clock.offset_ms += 1_000;
  expect((await lifecycle.move("heartbeat", id)).kind).toBe("ok");
  lifecycle.clock.offset_ms += 60_500;
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "lapse" });
});

test("a broker that goes away again and again extends a lease a few times only; a call of the holder starts anew", async () => {
  const lifecycle = await openLifecycle({ limits: { max_attempts: 1 } });
  const id = await lifecycle.inState("working");
  const start = await grantedAt(lifecycle, id);
  let at = 0;
  const next = async () => {
    await away(lifecycle, start, at + 50, at + 70);
    at += 70;
    lifecycle.clock.offset_ms += 500;
    return lifecycle.move("due", id);
  };
  for (let n = 0; n < LIMITS.graces.value; n += 1) expect(await next()).toMatchObject({ move: "grace" });
  expect((await lifecycle.move("heartbeat", id)).kind).toBe("ok");
  for (let n = 0; n < LIMITS.graces.value; n += 1) expect(await next()).toMatchObject({ move: "grace" });
  expect(await next()).toMatchObject({ move: "exhaust", state: "failed" });
});

test("an outage that a wrong clock put into the future gives no grace", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  await away(lifecycle, await grantedAt(lifecycle, id), -1, 7_200);
  lifecycle.clock.offset_ms = 61_000;
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "lapse", attempt: 2 });
});

test("a deadline, a cancel and a question are not put off", async () => {
  const lifecycle = await openLifecycle();
  const [late, canceled, asked] = [
    await lifecycle.inState("working", { ttl_ms: 65_000 }),
    await lifecycle.inState("canceled"),
    await lifecycle.inState("input_required"),
  ];
  const start = await grantedAt(lifecycle, late);
  await away(lifecycle, start, 30, 100_000);
  lifecycle.clock.offset_ms += 500;
  expect(await lifecycle.move("due", late)).toMatchObject({ move: "expire", state: "failed" });
  expect(await lifecycle.move("due", canceled)).not.toMatchObject({ move: "grace" });
  expect(await lifecycle.move("due", asked)).toMatchObject({ move: "expire", state: "failed" });
});

test("the time to confirm a lease gets its own period again, and then costs no attempt", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("submitted");
  await lifecycle.move("lease", id, { confirm_ms: 5_000 });
  await away(lifecycle, await grantedAt(lifecycle, id), 1, 100);
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "grace" });
  lifecycle.clock.offset_ms += 4_000;
  expect((await lifecycle.move("due", id)).kind).toBe("not_due");
  lifecycle.clock.offset_ms += 2_000;
  expect(await lifecycle.move("due", id)).toMatchObject({ move: "unconfirm", attempt: 1 });
});

test("a move that runs before the outage is recorded sees it by the last sign of life", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  const other = await lifecycle.inState("working");
  await outage(lifecycle, 61);
  expect(await lifecycle.move("due", id, { outage_ms: 3_000 })).toMatchObject({ move: "grace" });
  await lifecycle.redis.del(lifecycle.shards.at(0).alive);
  expect(await lifecycle.move("due", other, { outage_ms: 3_000 })).toMatchObject({ move: "lapse" });
});
