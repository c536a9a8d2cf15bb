/** A schedule that stops while a tick waits, keys that are repeated, tokens with a limit, one that cannot be read, those of deleted agents, and the audit log. */
import { expect, test } from "vitest";
import { keys } from "../../../src/redis/keys.ts";
import { as, client, startBroker } from "../../support/broker.ts";

const TASK = { target: "scout", task: "tidy up" };

async function setup() {
  const broker = await startBroker();
  const admin = client(broker.url);
  await admin.agent("scout", { limits: { max_waiting: 1 } });
  const alice = await as(broker.url, "caller:alice");
  const { schedules } = broker.gateway.broker;
  const create = async (settings: Record<string, unknown> = {}) =>
    (await alice.call("POST", "/v1/schedules", { every_seconds: 3600, delegation: TASK, ...settings })).body;
  const forward = async (seconds: number) => {
    broker.clock.offset_ms += seconds * 1000;
    await schedules.tick();
  };
  const runs = async (id: string) => (await admin.call("GET", `/v1/schedules/${id}/runs`)).body.runs;
  const get = async (id: string) => (await admin.call("GET", `/v1/schedules/${id}`)).body;
  const post = (id: string, verb: string) => alice.call("POST", `/v1/schedules/${id}/${verb}`);
  /** A schedule whose tick waits, because the queue is full; `free` makes room. */
  const waiting = async () => {
    const { body } = await alice.delegate("scout");
    const { id } = await create();
    await forward(3600);
    expect((await get(id)).problem.code).toBe("queue_full");
    const free = () => admin.call("POST", `/v1/delegations/${body.id}/cancel`);
    return { id, free };
  };
  return { ...broker, admin, alice, schedules, create, forward, runs, get, post, waiting };
}

test("a tick that waits is not made with a token that was revoked meanwhile", async () => {
  const { waiting, admin, alice, forward, runs, get } = await setup();
  const { id, free } = await waiting();
  await admin.call("DELETE", `/v1/tokens/${alice.tokenId}`);
  await free();
  await forward(10);
  expect(await runs(id)).toMatchObject([{ delegation_id: null, skipped: "unauthenticated" }]);
  expect(await get(id)).toMatchObject({ state: "blocked", problem: { code: "unauthenticated" } });
});

test("a tick that waits is not made while the schedule is paused, and is missed if that takes long", async () => {
  const { waiting, forward, runs, post } = await setup();
  const { id, free } = await waiting();
  await post(id, "pause");
  await free();
  await forward(60);
  expect(await runs(id)).toEqual([]);
  await post(id, "resume");
  await forward(10);
  expect(await runs(id)).toMatchObject([{ delegation_id: null, skipped: "missed" }]);
  await forward(3600);
  expect(await runs(id)).toMatchObject([{ skipped: null }, { skipped: "missed" }]);
});

test("a tick that was made just before the pause is in the history", async () => {
  const { create, forward, runs, post, redis, schedules } = await setup();
  const { id } = await create();
  await forward(3600);
  const [run] = await runs(id);
  // As a gateway leaves it that dies after the submit.
  const pending = JSON.stringify({ at: Date.parse(run.at), cancels: [] });
  await redis.hset(keys.schedule(id), "pending", pending, "last", Date.parse(run.at) - 1);
  await redis.del(keys.scheduleRuns(id));
  await post(id, "pause");
  await schedules.tick();
  expect(await runs(id)).toEqual([run]);
});

test("nobody delegates with a higher priority than its own token's by the schedule of another token", async () => {
  const { admin, url, create, get } = await setup();
  const { body } = await admin.call("POST", "/v1/tokens", { principal: "caller:alice", max_priority: 3 });
  const limited = client(url, body.token);
  const { id } = await create({ delegation: { ...TASK, priority: 9 } });
  const run = await limited.call("POST", `/v1/schedules/${id}/run`);
  expect(run.body.code).toBe("priority_too_high");
  const patch = { delegation: { ...TASK, priority: 8 } };
  expect((await limited.call("PATCH", `/v1/schedules/${id}`, patch)).body.code).toBe("priority_too_high");
  expect((await get(id)).delegation.priority).toBe(9);
});

test("a repeated create answers the schedule, also if it would be refused by now", async () => {
  const { admin, alice, get } = await setup();
  const body = { every_seconds: 3600, delegation: TASK };
  const create = (more = {}) =>
    alice.call("POST", "/v1/schedules", { ...body, ...more }, { "idempotency-key": "daily" });
  const { body: made } = await create();
  await admin.agent("scout", { accepts_from: ["operator"] });
  const again = await create();
  expect(again).toMatchObject({ status: 200, body: { id: made.id } });
  expect((await create({ name: "other" })).body.code).toBe("idempotency_conflict");
  expect((await get(made.id)).updated_at).toBe(made.updated_at);
});

test("a repeated run has one entry, and each manual run that has not ended counts as running", async () => {
  const { create, alice, admin, forward, runs } = await setup();
  await admin.agent("scout");
  const { id } = await create({ overlap: "skip" });
  const run = async (key: string) =>
    (await alice.call("POST", `/v1/schedules/${id}/run`, undefined, { "idempotency-key": key })).body;
  const first = await run("a");
  const second = await run("b");
  expect(await run("a")).toEqual(first);
  expect(await runs(id)).toEqual([second, first]);
  await alice.call("POST", `/v1/delegations/${second.delegation_id}/cancel`);
  await forward(3600);
  expect((await runs(id))[0].skipped).toBe("overlap");
  await alice.call("POST", `/v1/delegations/${first.delegation_id}/cancel`);
  await forward(3600);
  expect((await runs(id))[0].skipped).toBe(null);
});

test("schedules that cannot be read keep no others waiting", async () => {
  const { create, forward, runs, redis, alice } = await setup();
  for (let n = 0; n < 60; n += 1) {
    const { id } = await create({ every_seconds: 1800, paused: true });
    await redis.hset(keys.schedule(id), "settings", '{"nothing": "of it"}', "state", "active");
    await redis.zadd(keys.schedulesDue, Date.now(), id);
  }
  const { id } = await create();
  await forward(3600);
  expect(await runs(id)).toMatchObject([{ skipped: null }]);
  expect((await alice.call("GET", "/v1/delegations")).body.delegations).toHaveLength(1);
});

test("the audit log has who changed, paused, ran and deleted a schedule, each once", async () => {
  const { create, alice, admin } = await setup();
  const { id } = await create();
  const path = `/v1/schedules/${id}`;
  await alice.call("PATCH", path, { name: "nightly" });
  await admin.call("POST", `${path}/pause`);
  await admin.call("POST", `${path}/resume`);
  const key = { "idempotency-key": "once" };
  const { body: run } = await alice.call("POST", `${path}/run`, undefined, key);
  await alice.call("POST", `${path}/run`, undefined, key);
  await admin.call("DELETE", path);
  const { entries } = (await admin.call("GET", `/v1/audit?subject=${id}`)).body;
  const owner = "caller:alice";
  const shown = ({ action, by, details }: Record<string, unknown>) => [action, by, details];
  expect(entries.map(shown)).toEqual([
    ["schedule.delete", "operator", { owner }],
    ["schedule.run", owner, { owner, delegation_id: run.delegation_id }],
    ["schedule.resume", "operator", { owner }],
    ["schedule.pause", "operator", { owner }],
    ["schedule.update", owner, { owner }],
    ["schedule.create", owner, { target: "scout" }],
  ]);
});

test("a new agent does not see a schedule of a deleted one of its name", async () => {
  const { admin, url, redis } = await setup();
  await admin.agent("lead");
  const lead = await as(url, "agent:lead");
  const body = { every_seconds: 3600, delegation: TASK };
  const { id } = (await lead.call("POST", "/v1/schedules", body)).body;
  const stored = await redis.hgetall(keys.schedule(id));
  await admin.call("DELETE", "/v1/agents/lead?force=true");
  // As if it was created while the agent was being deleted.
  await redis.hset(keys.schedule(id), stored);
  await redis.zadd(keys.schedulesOf("agent:lead"), 1, id);
  await admin.agent("lead");
  const renewed = await as(url, "agent:lead");
  expect((await renewed.call("GET", `/v1/schedules/${id}`)).body.code).toBe("not_found");
  expect((await renewed.call("GET", "/v1/schedules")).body.schedules).toEqual([]);
  expect((await renewed.call("POST", `/v1/schedules/${id}/run`)).body.code).toBe("not_found");
});
