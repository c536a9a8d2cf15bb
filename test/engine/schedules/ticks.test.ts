/** Schedules by injected time: the ticks of the calendar, missed ones, overlaps, pauses, and what stops a schedule. */
import { expect, test } from "vitest";
import { keys } from "../../../src/redis/keys.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import { as, client, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

async function setup(more: Record<string, unknown> = {}) {
  const broker = await startBroker();
  const admin = client(broker.url);
  await admin.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  const { schedules } = broker.gateway.broker;
  // Far enough in the future that no wake of BullMQ, which follows the machine's clock, comes in between.
  const create = async (settings: Record<string, unknown> = {}) =>
    (
      await alice.call("POST", "/v1/schedules", {
        every_seconds: 3600,
        delegation: { target: "scout", task: "tidy up" },
        ...more,
        ...settings,
      })
    ).body;
  const forward = async (seconds: number) => {
    broker.clock.offset_ms += seconds * 1000;
    await schedules.tick();
  };
  const runs = async (id: string) => (await alice.call("GET", `/v1/schedules/${id}/runs`)).body.runs;
  const get = async (id: string) => (await alice.call("GET", `/v1/schedules/${id}`)).body;
  const post = (id: string, verb: string) => alice.call("POST", `/v1/schedules/${id}/${verb}`);
  const count = async () => (await admin.call("GET", "/v1/delegations?limit=100")).body.delegations.length;
  return { ...broker, admin, alice, schedules, create, forward, runs, get, post, count };
}

test("each tick makes one delegation, which names its schedule", async () => {
  const { create, forward, runs, get, alice, count, schedules } = await setup();
  const made = await create();
  expect(made).toMatchObject({ owner: "caller:alice", state: "active", problem: null, last_runs: [] });
  expect(made.next).toHaveLength(3);
  await forward(3600);
  await schedules.tick();
  await forward(3600);
  const [second, first] = await runs(made.id);
  expect([first.at, second.at]).toEqual(made.next.slice(0, 2));
  expect(await count()).toBe(2);
  const { delegator, metadata } = (await alice.get(first.delegation_id)).body;
  expect({ delegator, metadata }).toEqual({
    delegator: "caller:alice",
    metadata: { schedule: { id: made.id, at: first.at } },
  });
  expect((await get(made.id)).next[0]).toBe(made.next[2]);
});

test("a tick has at most the priority of the token that started the schedule, and so has a change of it", async () => {
  const { admin, url, alice, get, runs, forward } = await setup();
  const { token } = (await admin.call("POST", "/v1/tokens", { principal: "caller:alice", max_priority: 3 }))
    .body;
  const limited = client(url, token);
  const delegation = { target: "scout", task: "tidy up" };
  const create = (priority?: number) =>
    limited.call("POST", "/v1/schedules", { every_seconds: 3600, delegation: { ...delegation, priority } });
  expect((await create(4)).body.code).toBe("priority_too_high");
  const { id } = (await create()).body;
  const patch = { delegation: { ...delegation, priority: 9 } };
  expect((await alice.call("PATCH", `/v1/schedules/${id}`, patch)).body.code).toBe("priority_too_high");
  await forward(3600);
  const [run] = await runs(id);
  expect((await alice.get(run.delegation_id)).body.priority).toBe(3);
  expect((await get(id)).state).toBe("active");
});

test("ticks use the budgets of the token that started the schedule, and wait while one is used up", async () => {
  const { admin, url, get, runs, forward } = await setup();
  const budgets = { month: { tokens: 5 } };
  const { token } = (await admin.call("POST", "/v1/tokens", { principal: "caller:alice", budgets })).body;
  const limited = client(url, token);
  const delegation = { target: "scout", task: "tidy up" };
  const { id } = (await limited.call("POST", "/v1/schedules", { every_seconds: 60, delegation })).body;
  await forward(60);
  const scout = await as(url, "agent:scout");
  const [lease] = (await scout.lease("scout")).body.leases;
  await scout.reply(lease.lease_id, { usage: { input_tokens: 5 } });
  expect((await limited.call("GET", "/v1/status")).body.budgets.month.used.tokens).toBe(5);
  await forward(60);
  expect(await runs(id)).toHaveLength(1);
  expect(await get(id)).toMatchObject({ state: "active", problem: { code: "budget_exhausted" } });
  const run = await limited.call("POST", `/v1/schedules/${id}/run`, {});
  expect(run.body.code).toBe("budget_exhausted");
});

test.each([
  ["skip", 0],
  ["one", 1],
  ["all", 5],
])("of missed ticks, %s makes %i later", async (missed, later) => {
  const { create, forward, runs } = await setup();
  const { id, next } = await create({ missed });
  const first = Date.parse(next[0]);
  await forward(5 * 3600 + 60);
  const [newest, ...rest] = await runs(id);
  const made = [newest, ...rest].filter((run: { skipped: string | null }) => run.skipped === null);
  expect(made).toHaveLength(later);
  const left = [newest, ...rest].filter((run: { skipped: string | null }) => run.skipped === "missed");
  const last = new Date(first + (5 - later - 1) * 3600_000).toISOString();
  const entry = { at: last, skipped: "missed", delegation_id: null, since: next[0] };
  expect(left).toEqual(later === 5 ? [] : [expect.objectContaining(entry)]);
});

test("of very many missed ticks, all makes the newest 100", async () => {
  const { create, forward, runs, count } = await setup();
  const { id } = await create({ missed: "all" });
  await forward(250 * 3600 + 60);
  const all = await runs(id);
  expect(all).toHaveLength(LIMITS.schedule_runs.value);
  expect(all.every((run: { skipped: string | null }) => run.skipped === null)).toBe(true);
  const { delegations } = { delegations: await count() };
  expect(delegations).toBe(LIMITS.schedule_missed.value);
});

test("a tick that is a little late is not missed", async () => {
  const { create, forward, runs } = await setup();
  const { id, next } = await create({ missed: "skip" });
  await forward(3600 + LIMITS.schedule_missed_seconds.value - 5);
  expect(await runs(id)).toMatchObject([{ at: next[0], skipped: null }]);
});

test("overlap skip leaves a tick out while the earlier delegation has not ended", async () => {
  const { create, forward, runs, alice } = await setup();
  const { id } = await create({ overlap: "skip" });
  await forward(3600);
  await forward(3600);
  const [second, first] = await runs(id);
  expect(second).toMatchObject({ delegation_id: null, skipped: "overlap" });
  await alice.call("POST", `/v1/delegations/${first.delegation_id}/cancel`);
  await forward(3600);
  expect((await runs(id))[0].skipped).toBe(null);
});

test("overlap cancel_running cancels the earlier delegation, overlap queue does not", async () => {
  const { create, forward, runs, alice } = await setup();
  const canceling = await create({ overlap: "cancel_running" });
  const queueing = await create({ overlap: "queue" });
  await forward(3600);
  await forward(3600);
  const states = async (id: string) =>
    Promise.all(
      (await runs(id)).map(
        async (run: { delegation_id: string }) => (await alice.get(run.delegation_id)).body,
      ),
    );
  const [newer, older] = await states(canceling.id);
  expect([newer.state, older.state]).toEqual(["submitted", "canceled"]);
  expect(older.error.message).toContain(canceling.id);
  expect((await states(queueing.id)).map(({ state }) => state)).toEqual(["submitted", "submitted"]);
});

test("a paused schedule makes no ticks, and those of the pause are left out", async () => {
  const { create, forward, runs, post, get } = await setup({ missed: "all" });
  const { id } = await create();
  expect((await post(id, "pause")).body).toMatchObject({ state: "paused", next: [] });
  await forward(5 * 3600);
  expect(await runs(id)).toEqual([]);
  expect((await post(id, "resume")).body).toMatchObject({ state: "active", problem: null });
  await forward(3600);
  const { last_runs } = await get(id);
  expect(last_runs).toHaveLength(1);
});

test("run now delegates once for each key, also while it is paused", async () => {
  const { create, post, runs, alice, count } = await setup();
  const { id } = await create({ paused: true });
  const run = () => alice.call("POST", `/v1/schedules/${id}/run`, undefined, { "idempotency-key": "now" });
  const { status, body } = await run();
  expect({ status, kind: body.kind }).toEqual({ status: 202, kind: "manual" });
  expect((await run()).body.delegation_id).toBe(body.delegation_id);
  await post(id, "run");
  expect(await count()).toBe(2);
  expect(await runs(id)).toHaveLength(2);
});

test("without its token, or its right to delegate, a schedule stops and says why", async () => {
  const { create, forward, get, admin, alice, runs, url } = await setup();
  const one = await create();
  await admin.agent("scout", { accepts_from: ["operator"] });
  await forward(3600);
  expect(await get(one.id)).toMatchObject({ state: "blocked", problem: { code: "not_accepted" }, next: [] });
  expect(await runs(one.id)).toMatchObject([{ delegation_id: null, skipped: "not_accepted" }]);
  await admin.agent("scout");
  await alice.call("POST", `/v1/schedules/${one.id}/resume`);
  await forward(3600);
  expect((await runs(one.id))[0].skipped).toBe(null);
  const again = await as(url, "caller:alice");
  await admin.call("DELETE", `/v1/tokens/${alice.tokenId}`);
  await forward(3600);
  const blocked = { state: "blocked", problem: { code: "unauthenticated" } };
  const path = `/v1/schedules/${one.id}`;
  expect((await again.call("GET", path)).body).toMatchObject(blocked);
  expect((await again.call("POST", `${path}/resume`)).body).toMatchObject({ state: "active", problem: null });
  await forward(3600);
  expect((await again.call("GET", path)).body.last_runs[0].skipped).toBe(null);
});

test("a full queue delays a tick, and does not stop the schedule", async () => {
  const { create, forward, get, admin, alice, runs } = await setup();
  await admin.agent("scout", { limits: { max_waiting: 1 } });
  const { body } = await alice.delegate("scout");
  const { id, next } = await create();
  await forward(3600);
  expect(await get(id)).toMatchObject({ state: "active", problem: { code: "queue_full" } });
  await alice.call("POST", `/v1/delegations/${body.id}/cancel`);
  await forward(10);
  expect(await runs(id)).toMatchObject([{ at: next[0], skipped: null }]);
  expect((await get(id)).problem).toBe(null);
});

test("gateways that look at the same time, and again, make each tick once", async () => {
  const { create, clock, schedules, another, runs, count } = await setup();
  const { id } = await create({ missed: "all" });
  const { gateway } = await another();
  clock.offset_ms += 10 * 3600_000;
  await Promise.all([schedules.tick(), gateway.broker.schedules.tick(), schedules.tick()]);
  await Promise.all([schedules.tick(), gateway.broker.schedules.tick()]);
  expect(await runs(id)).toHaveLength(10);
  expect(await count()).toBe(10);
});

test("a changed calendar counts from now, and another kind replaces it", async () => {
  const { create, alice, forward, runs } = await setup();
  const { id } = await create();
  const path = `/v1/schedules/${id}`;
  const patched = await alice.call("PATCH", path, { cron: "0 9 * * MON", time_zone: "Europe/Berlin" });
  expect(patched).toMatchObject({ status: 200, body: { cron: "0 9 * * MON", time_zone: "Europe/Berlin" } });
  expect(patched.body).not.toHaveProperty("every_seconds");
  await alice.call("PATCH", path, { every_seconds: 7200, delegation: { target: "scout", task: "other" } });
  await forward(3600);
  expect(await runs(id)).toEqual([]);
  await forward(3600);
  const [{ delegation_id }] = await runs(id);
  expect((await alice.get(delegation_id)).body.task_preview).toBe("other");
});

test("a deleted schedule leaves nothing", async () => {
  const { create, alice, redis, forward } = await setup();
  const { id } = await create();
  await forward(3600);
  expect(await redis.exists(keys.schedule(id), keys.scheduleRuns(id))).toBe(2);
  expect((await alice.call("DELETE", `/v1/schedules/${id}`)).status).toBe(204);
  expect((await redis.keys("*sched*")).filter((key) => key.includes(id))).toEqual([]);
  expect((await alice.call("GET", `/v1/schedules/${id}`)).status).toBe(404);
});

test("BullMQ wakes the ticks of an active schedule, and no longer those of one that stopped by itself", async () => {
  const { create, runs, admin, redis, get } = await setup();
  const { id } = await create({ every_seconds: 1 });
  const wakes = () => redis.zcard("{errand}:q:~schedules:repeat");
  expect(await wakes()).toBe(1);
  // Without a sweep, so every tick comes from a wake.
  await until(async () => (await runs(id)).length >= 2, { what: "two ticks" });
  await admin.agent("scout", { accepts_from: ["operator"] });
  await until(async () => (await wakes()) === 0, { what: "the end of the wakes" });
  expect(await get(id)).toMatchObject({ state: "blocked" });
  expect((await admin.call("POST", `/v1/schedules/${id}/pause`)).status).toBe(200);
});
