/** What the attempts of a delegation have used, as the script adds it up. */
import { expect, test } from "vitest";
import type { MoveName } from "../../src/lifecycle/states.ts";
import type { Redis } from "../../src/redis/connect.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import type { UsageReport } from "../../src/schema/usage.ts";
import { dump } from "../support/dump.ts";
import { openLifecycle } from "../support/lifecycle.ts";
import { ownEvents } from "../support/own-events.ts";
import { startOwnRedis } from "../support/own-redis.ts";

const { MAX_SAFE_INTEGER } = Number;

async function setup(max_attempts = 3, own?: Redis) {
  const lifecycle = await openLifecycle({ backoff: { initial_ms: 0 } }, own);
  const id = await lifecycle.inState("working", { max_attempts });
  const report = async (usage: UsageReport, name: MoveName = "heartbeat") =>
    (await lifecycle.writer.move({ ...(await lifecycle.command(name, id)), usage })).outcome;
  const usage = async () => JSON.parse((await lifecycle.read(id))?.json ?? "{}").usage;
  return { ...lifecycle, id, report, usage };
}

test("a report replaces the lease's earlier one, and what it leaves out stays", async () => {
  const { id, read, report, usage } = await setup();
  expect(await usage()).toBeUndefined();
  expect(await report({ input_tokens: 5, output_tokens: 1 })).toMatchObject({
    used: { input_tokens: 5, output_tokens: 1, delegator: "caller:alice" },
  });
  const second = await report({ input_tokens: 8, cost: 0.1, currency: "USD", model: "m-1" });
  expect(second).toMatchObject({ kind: "ok", used: { input_tokens: 3, cost: 0.1 } });
  const sum = { input_tokens: 8, output_tokens: 1, cost: 0.1, currency: "USD", complete: false };
  expect(await usage()).toEqual({ attempts: [{ attempt: 1, ...sum, model: "m-1" }], total: sum });
  expect((await read(id))?.get("version")).toBe(2);
});

test("a question does not end the attempt: its leases are added up", async () => {
  const { id, move, report, usage } = await setup();
  await report({ input_tokens: 5, cost: 0.1, currency: "USD" });
  await move("interrupt", id);
  await move("answer", id);
  await move("lease", id);
  await report({ input_tokens: 1, cost: 0.2, currency: "USD" });
  await report({ input_tokens: 2 }, "complete");
  const sum = { input_tokens: 7, cost: 0.3, currency: "USD", complete: true };
  expect(await usage()).toEqual({ attempts: [{ attempt: 1, ...sum }], total: sum });
});

test("a lease that was released may have used more than it reported, so its attempt is not complete", async () => {
  const { id, move, report, usage } = await setup();
  await report({ input_tokens: 5 });
  await move("release", id);
  await move("lease", id);
  await report({ input_tokens: 1 });
  await report({ input_tokens: 2 }, "complete");
  const sum = { input_tokens: 7, complete: false };
  expect(await usage()).toEqual({ attempts: [{ attempt: 1, ...sum }], total: sum });
});

test("an attempt is complete if its reply reported its usage, and the total if each attempt is", async () => {
  const { id, clock, move, report, usage } = await setup(5);
  await report({ input_tokens: 1 });
  clock.offset_ms = 61_000;
  expect(await move("due", id)).toMatchObject({ move: "lapse" });
  await move("lease", id);
  await report({ input_tokens: 2 }, "retry");
  await move("lease", id);
  await report({ input_tokens: 4 }, "complete");
  expect(await usage()).toEqual({
    attempts: [
      { attempt: 1, input_tokens: 1, complete: false },
      { attempt: 2, input_tokens: 2, complete: true },
      { attempt: 3, input_tokens: 4, complete: true },
    ],
    total: { input_tokens: 7, complete: false },
  });
});

test("a reply without usage, and an attempt that reported nothing, leave the total incomplete", async () => {
  const one = await setup();
  await one.report({ input_tokens: 1 });
  await one.move("complete", one.id);
  expect((await one.usage()).total).toEqual({ input_tokens: 1, complete: false });

  const two = await setup();
  await two.move("retry", two.id);
  await two.move("lease", two.id);
  await two.report({ input_tokens: 1 }, "complete");
  expect(await two.usage()).toEqual({
    attempts: [{ attempt: 2, input_tokens: 1, complete: true }],
    total: { input_tokens: 1, complete: false },
  });

  const three = await setup();
  await three.report({ input_tokens: 1 }, "retry");
  expect((await three.usage()).total.complete).toBe(true);
  await three.move("lease", three.id);
  expect((await three.usage()).total.complete).toBe(false);
});

test("a reclaimed lease goes on in its own attempt", async () => {
  const { id, clock, move, report, usage } = await setup();
  await report({ input_tokens: 1 });
  clock.offset_ms = 61_000;
  await move("due", id);
  await move("reclaim", id);
  expect(await report({ input_tokens: 0 })).toMatchObject({ kind: "usage_shrinks" });
  await report({ input_tokens: 3 }, "complete");
  const sum = { input_tokens: 3, complete: true };
  expect(await usage()).toEqual({ attempts: [{ attempt: 1, ...sum }], total: sum });
});

test.each<readonly [string, UsageReport, object]>([
  ["shrinks", { input_tokens: 4 }, { kind: "usage_shrinks", amount: "input_tokens", before: 5, reported: 4 }],
  ["costs less", { cost: 0.099, currency: "USD" }, { kind: "usage_shrinks", amount: "cost" }],
  ["is in another currency", { cost: 1, currency: "EUR" }, { kind: "usage_currency", currency: "USD" }],
])("a report that %s changes nothing, with any call", async (_, wrong, refusal) => {
  const { redis, report } = await setup();
  await report({ input_tokens: 5, cost: 0.1, currency: "USD" });
  const before = await dump(redis);
  for (const name of ["heartbeat", "progress", "complete", "fail"] as const) {
    expect(await report(wrong, name)).toMatchObject(refusal);
    expect(await dump(redis)).toEqual(before);
  }
});

test("another lease may report less, but no other currency", async () => {
  const { id, move, report } = await setup();
  await report({ cost: 1, currency: "USD" });
  await move("release", id);
  await move("lease", id);
  expect(await report({ cost: 1, currency: "EUR" })).toMatchObject({ kind: "usage_currency" });
  expect(await report({ cost: 0.5, currency: "USD" })).toMatchObject({ kind: "ok" });
});

test("large and small amounts stay what they are, and sums stay safe integers", async () => {
  const { id, move, report, usage } = await setup();
  const large = { input_tokens: MAX_SAFE_INTEGER, cost: 1 / 3, currency: "USD", model: 'a "b" /c' };
  for (let n = 0; n < 3; n += 1) expect((await report(large)).kind).toBe("ok");
  expect((await usage()).attempts).toMatchObject([{ ...large, cost: 0.333333333333 }]);
  await move("release", id);
  await move("lease", id);
  await report({ input_tokens: 7, cost: 1e-9, currency: "USD" });
  expect((await usage()).total).toMatchObject({ input_tokens: MAX_SAFE_INTEGER, cost: 0.333333334333 });
});

test("the newest attempts are kept, and the total counts all", async () => {
  const most = LIMITS.usage_attempts.value;
  const { id, move, report, usage } = await setup(100);
  for (let n = 0; n < most + 2; n += 1) {
    await report({ output_tokens: 1 }, "retry");
    await move("lease", id);
  }
  await report({ output_tokens: 1 }, "complete");
  const { attempts, total } = await usage();
  expect(attempts.map((one: { attempt: number }) => one.attempt)).toEqual(
    Array.from({ length: most }, (_, n) => n + 4),
  );
  expect(total).toEqual({ output_tokens: most + 3, complete: true });
});

test("events with a usage have the total so far; a heartbeat with nothing else writes none", async () => {
  const { redis, id, report, move } = await setup();
  await report({ input_tokens: 1 });
  await report({ input_tokens: 2 }, "progress");
  await report({ input_tokens: 3 }, "retry");
  await move("lease", id);
  await move("cancel", id);
  const shown = (await ownEvents(redis, id)).map(([, text]) => /"usage":(\{.*?\})/.exec(text)?.[1]);
  expect(shown).toEqual([
    undefined,
    undefined,
    '{"input_tokens":2}',
    '{"input_tokens":3}',
    undefined,
    '{"input_tokens":3}',
  ]);
});

test("a heartbeat without usage costs no more commands than before, and one with usage two reads more", async () => {
  const own = await startOwnRedis();
  const { id, report, move } = await setup(3, own.redis);
  const calls = async (usage?: UsageReport) => {
    await own.redis.config("RESETSTAT");
    await (usage ? report(usage) : move("heartbeat", id));
    const text = await own.redis.info("commandstats");
    const counts = [...text.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name, n]) => [name, Number(n)]);
    return Object.fromEntries(
      counts.filter(([name]) => ["hget", "hset", "hmget", "zadd"].includes(`${name}`)),
    );
  };
  const plain = await calls();
  expect(plain).toEqual({ hget: 1, hset: 1, zadd: 1 });
  expect(await calls({ input_tokens: 1 })).toEqual({ ...plain, hget: 2, hmget: 1 });
  expect(await calls()).toEqual(plain);
});
