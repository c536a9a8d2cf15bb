/** Agents with `serial_by: "context"`: of each conversation they work on one delegation at a time, in order. */
import { expect, test } from "vitest";
import type { DelegationEvent } from "../../src/schema/event.ts";
import { as, client, startBroker, type TestOptions } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { until } from "../support/until.ts";

async function setup(settings: object = {}, options: TestOptions = {}) {
  const broker = await startBroker({ shards: 1, ...options });
  const { url } = broker;
  const scout = await as(url, "agent:scout");
  const alice = await as(url, "caller:alice");
  const set = async (more: object) => {
    const { status } = await scout.agent("scout", { backoff: { initial_ms: 0 }, ...more });
    expect([200, 201]).toContain(status);
  };
  await set({ serial_by: "context", ...settings });
  const say = async (context_id: string, more: object = {}, by = alice): Promise<string> => {
    const { status, body } = await by.delegate("scout", { context_id, ...more });
    expect(status).toBe(202);
    return body.id;
  };
  const leases = async (more: object = {}, at = scout) =>
    (await at.lease("scout", { wait_seconds: 0, max: 32, ...more })).body.leases;
  /** The delegations that workers get now, and their leases. */
  const take = async (more: object = {}, at = scout) => {
    const taken = new Map<string, string>();
    for (const { lease_id, delegation } of await leases(more, at)) taken.set(delegation.id, lease_id);
    return taken;
  };
  const ids = async (more: object = {}) => [...(await take(more)).keys()];
  const behind = async (id: string) => (await alice.get(id)).body.behind;
  const sweep = async (ms: number) => {
    broker.clock.offset_ms += ms;
    await broker.gateway.sweep.tick();
  };
  const keys = async (kind: string) => (await broker.redis.keys(`*:${kind}:*`)).sort();
  return { ...broker, scout, alice, set, say, leases, take, ids, behind, sweep, keys };
}

const statuses = (events: readonly DelegationEvent[]) => events.map(({ status, type }) => status ?? type);

test("the next one of a conversation is leased only after the end of the one before; other conversations go on", async () => {
  const { alice, scout, say, take, ids, behind, keys } = await setup();
  const [first, second, third] = [await say("a"), await say("a"), await say("a")];
  const other = await say("b");
  expect([await behind(first), await behind(second), await behind(third)]).toEqual([
    undefined,
    first,
    second,
  ]);
  const taken = await take();
  expect([...taken.keys()]).toEqual([first, other]);
  expect((await scout.reply(taken.get(first) ?? "")).status).toBe(200);
  expect(await behind(second)).toBeUndefined();
  expect(await behind(third)).toBe(second);
  const events = await eventsOf(alice, second);
  expect(events[0]).toMatchObject({ status: "queued", behind: first });
  expect(statuses(events)).toEqual(["queued", "admitted"]);
  expect(events[1]).toMatchObject({ state: "submitted" });
  const next = await take();
  expect([...next.keys()]).toEqual([second]);
  await scout.reply(next.get(second) ?? "");
  const last = await take();
  expect([...last.keys()]).toEqual([third]);
  await scout.reply(last.get(third) ?? "");
  await scout.reply(taken.get(other) ?? "");
  expect(await keys("line")).toEqual([]);
  expect(await ids()).toEqual([]);
  for (const id of [first, second, third, other]) checkHistory(await eventsOf(alice, id), "finished");
});

test("another delegator with the same context_id has a conversation of its own", async () => {
  const { url, say, ids } = await setup();
  const bob = await as(url, "caller:bob");
  const [hers, his] = [await say("a"), await say("a", {}, bob)];
  expect(await ids()).toEqual([hers, his]);
});

test("the turn is kept through questions, retries and waits for children", async () => {
  const { alice, scout, url, say, take, behind } = await setup();
  const helper = await as(url, "agent:helper");
  await helper.agent("helper");
  const [first, second] = [await say("a"), await say("a")];
  const one = async () => {
    const taken = await take();
    expect([...taken.keys()]).toEqual([first]);
    return taken.get(first) ?? "";
  };
  const asked = await scout.interrupt(await one(), { text: "Which?" });
  expect(await take()).toEqual(new Map());
  await alice.answer(first, asked.body.interrupt_id, { text: "this" });
  await scout.release(await one());
  const failing = { state: "failed", error: { code: "broken", message: "again", retryable: true } };
  expect((await scout.reply(await one(), { ...failing, text: undefined })).status).toBe(200);
  const lease = await one();
  const child = (await scout.delegate("helper", { parent_id: first })).body.id;
  await scout.await(lease, [child]);
  expect(await take()).toEqual(new Map());
  expect(await behind(second)).toBe(first);
  await scout.cancel(child);
  await until(async () => (await alice.get(first)).body.state === "submitted");
  await scout.reply(await one());
  expect([...(await take()).keys()]).toEqual([second]);
});

test("one in line for which the broker asks for a larger budget has its turn when the one before it ends", async () => {
  const { url, alice, scout, say, take, ids, behind, sweep } = await setup();
  const helper = await as(url, "agent:helper");
  await helper.agent("helper");
  const first = await say("a");
  const second = await say("a", { budget: { tokens: 10 }, on_budget: "ask" });
  const third = await say("a");
  const lease = (await take({ lease_seconds: 3600 })).get(first) ?? "";
  // Its part uses too much before the work itself begins.
  await alice.delegate("helper", { parent_id: second });
  const { lease_id } = (await helper.lease("helper", { wait_seconds: 0 })).body.leases[0];
  await helper.reply(lease_id, { usage: { input_tokens: 11 } });
  await until(async () => (await alice.get(second)).body.budget.exceeded === true);
  await sweep(0);
  const { state, interrupt } = (await alice.get(second)).body;
  expect([state, await behind(second)]).toEqual(["input_required", first]);
  await scout.reply(lease);
  expect([await behind(second), await behind(third)]).toEqual([undefined, second]);
  const answered = await alice.answer(second, interrupt.id, { decision: "approve", data: { tokens: 50 } });
  expect(answered.status).toBe(200);
  // Without a look of the sweep.
  expect(await ids()).toEqual([second]);
  expect(statuses(await eventsOf(alice, second))).toEqual(["queued", "interrupted", "answered", "leased"]);
});

test("a poll that waits at another gateway gets the next one at once", async () => {
  const { another, say, take, scout } = await setup();
  const [first, second] = [await say("a"), await say("a")];
  const lease = (await take()).get(first) ?? "";
  const { gateway, url } = await another();
  const there = await as(url, "agent:scout");
  const waiting = take({ wait_seconds: 20, max: 1 }, there);
  await until(async () => gateway.broker.handoff.polls.count("scout") === 1);
  await scout.reply(lease);
  expect([...(await waiting).keys()]).toEqual([second]);
});

test("what is canceled or runs out of time while it waits leaves the line; the rest moves up", async () => {
  const { alice, scout, say, take, behind, sweep } = await setup();
  const [first, second] = [await say("a"), await say("a")];
  const third = await say("a", { ttl_seconds: 60 });
  const fourth = await say("a");
  const lease = (await take({ lease_seconds: 3600 })).get(first) ?? "";
  await alice.cancel(second);
  expect([await behind(third), await behind(fourth)]).toEqual([first, third]);
  await sweep(61_000);
  expect((await alice.get(third)).body).toMatchObject({
    state: "failed",
    error: { code: "deadline_exceeded" },
  });
  expect(await behind(fourth)).toBe(first);
  await alice.cancel(first);
  expect([...(await take()).keys()]).toEqual([fourth]);
  expect((await scout.heartbeat(lease)).body.details).toMatchObject({ reason: "canceled" });
});

test("one that waits counts as queued: the queue may be full of them", async () => {
  const { alice, say, set, take } = await setup();
  await set({ serial_by: "context", limits: { max_waiting: 2 } });
  await say("a");
  await take();
  await say("a");
  await say("a");
  const { status, body } = await alice.delegate("scout", { context_id: "a" });
  expect([status, body.code]).toEqual([429, "queue_full"]);
  expect((await alice.call("GET", "/v1/agents/scout")).body.counts).toMatchObject({ waiting: 2, working: 1 });
});

test("one with a delay joins the line when it may start, and holds up nobody before", async () => {
  const { scout, say, take, behind, sweep } = await setup();
  const later = await say("a", { delay_seconds: 60 });
  const first = await say("a");
  const lease = (await take({ lease_seconds: 3600 })).get(first) ?? "";
  await sweep(66_000);
  expect(await take()).toEqual(new Map());
  expect(await behind(later)).toBe(first);
  const last = await say("a");
  expect(await behind(last)).toBe(later);
  await scout.reply(lease);
  const next = await take();
  expect([...next.keys()]).toEqual([later]);
  await scout.reply(next.get(later) ?? "");
  expect([...(await take()).keys()]).toEqual([last]);
});

test("switched on, it also holds for what was queued before; switched off, nobody waits any longer", async () => {
  const { scout, say, set, take, behind, sweep, keys } = await setup({ serial_by: null });
  const before = [await say("a"), await say("a"), await say("a")];
  expect(await keys("line")).toEqual([]);
  await set({ serial_by: "context" });
  const taken = await take({ lease_seconds: 3600 });
  expect([...taken.keys()]).toEqual(before.slice(0, 1));
  expect(await behind(before[2] ?? "")).toBe(before[1]);
  await scout.reply(taken.get(before[0] ?? "") ?? "");
  const next = await take({ lease_seconds: 3600 });
  expect([...next.keys()]).toEqual(before.slice(1, 2));
  const late = await say("a");
  await set({ serial_by: null });
  await sweep(6_000);
  expect([...(await take()).keys()].sort()).toEqual([before[2], late].sort());
  await scout.reply(next.get(before[1] ?? "") ?? "");
  expect(await keys("line")).toEqual([]);
});

test("a line that is lost, or whose first has vanished, is repaired by the sweep", async () => {
  const { redis, say, take, sweep, behind, keys } = await setup();
  const [first, second, third] = [await say("a"), await say("a"), await say("a")];
  const [line = ""] = await keys("line");
  await redis.del(line);
  await sweep(6_000);
  expect(await redis.zrange(line, "0", "-1")).toEqual([first, second, third]);
  expect((await take()).size).toBe(1);
  await redis.del(`{errand:0}:d:${first}`);
  await sweep(11_000);
  expect(await behind(third)).toBe(second);
  expect([...(await take()).keys()]).toEqual([second]);
});

test("a lost ticket of the first is replaced; one that waits gets none", async () => {
  const { redis, say, take, sweep } = await setup();
  const first = await say("a");
  await say("a");
  await redis.del("{errand:0}:q:scout:prioritized", `{errand:0}:q:scout:${first}.1`);
  await sweep(6_000);
  expect([...(await take()).keys()]).toEqual([first]);
  await sweep(1_000);
  expect(await take()).toEqual(new Map());
});

test("a repeated submit of one that waits queues nothing", async () => {
  const { alice, say, take } = await setup();
  const first = await say("a");
  const key = { "idempotency-key": "k" };
  const body = { context_id: "a" };
  const { id } = (await alice.delegate("scout", body, key)).body;
  const again = await alice.delegate("scout", body, key);
  expect(again.body).toMatchObject({ id, behind: first });
  expect([...(await take()).keys()]).toEqual([first]);
});

test("a part of the work itself never waits for it, although it is of the same agent and conversation", async () => {
  const { say, take } = await setup();
  const first = await say("a");
  await take();
  const part = await say("a", { parent_id: first });
  expect([...(await take()).keys()]).toEqual([part]);
});

test("a follow-up reaches the one at work", async () => {
  const { alice, scout, say, take } = await setup();
  const first = await say("a");
  await say("a");
  const lease = (await take()).get(first) ?? "";
  expect((await alice.message(first, "and this")).status).toBeLessThan(300);
  expect((await scout.heartbeat(lease)).body.messages).toHaveLength(1);
});

test("a deleted agent takes its lines with it", async () => {
  const { url, alice, say, take, keys } = await setup();
  const all = [await say("a"), await say("a"), await say("a")];
  await take();
  expect((await client(url).call("DELETE", "/v1/agents/scout?force=true")).status).toBe(204);
  for (const id of all) expect((await alice.get(id)).body.state).toBe("canceled");
  expect(await keys("line")).toEqual([]);
});

test("an order that does not exist is refused with those that do", async () => {
  const { url } = await startBroker();
  for (const method of ["PUT", "PATCH"]) {
    const api = client(url);
    await api.agent("scout");
    const { body } = await api.call(method, "/v1/agents/scout", { serial_by: "none" });
    expect(body.detail).toBe('serial_by: must be "context", or null for no order');
  }
});
