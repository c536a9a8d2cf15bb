/** Every call of the holder of a lapsed lease reclaims it, over every way in, as long as nobody else has the work. */
import { expect, test } from "vitest";
import { as, client, startBroker, type TestBroker } from "../../support/broker.ts";
import { checkHistory, eventsOf } from "../../support/history.ts";
import { until } from "../../support/until.ts";

const artifact = { artifactId: "a", parts: [{ text: "part" }] };
const message = { messageId: "m1", role: "ROLE_AGENT", parts: [{ text: "done" }] };
const task = (state: string) => ({
  kind: "task",
  id: "t1",
  contextId: "c1",
  status: { state, message: { kind: "message", messageId: "m2", role: "agent", parts: [] } },
});

type Api = ReturnType<typeof client>;
const a2a = (result: unknown) => (api: Api, id: string) =>
  api.call("POST", "/v1/agents/scout/replies", { jsonrpc: "2.0", id, result });

async function setup(spec: unknown = {}) {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout", {
    backoff: { initial_ms: 60_000, jitter: 0 },
    limits: { max_attempts: 2 },
    ...Object(spec),
  });
  return { ...broker, api, scout: await as(broker.url, "agent:scout") };
}

/** A delegation with an artifact, whose lease lapsed. */
async function lapsed({ api, clock, gateway }: Pick<Awaited<ReturnType<typeof setup>>, "api"> & TestBroker) {
  const { id } = (await api.delegate("scout")).body;
  const { lease_id } = (await api.lease("scout", { worker_id: "w1" })).body.leases[0];
  await api.call("POST", `/v1/leases/${lease_id}/artifacts`, { artifact });
  clock.offset_ms += 61_000;
  await gateway.sweep.tick();
  expect((await api.get(id)).body).toMatchObject({ state: "submitted", attempt: 2, artifacts: [artifact] });
  return { id: String(id), lease: String(lease_id) };
}

/** What the holder does; the state and the attempt that the delegation then has. */
const CALLS: Record<
  string,
  readonly [(api: Api, lease: string) => Promise<{ status: number }>, string, number]
> = {
  "a heartbeat": [(api, lease) => api.heartbeat(lease), "working", 1],
  progress: [(api, lease) => api.heartbeat(lease, { progress: { done: 1 } }), "working", 1],
  "a held heartbeat": [(api, lease) => api.heartbeat(lease, { wait_seconds: 0.05 }), "working", 1],
  "an artifact": [
    (api, lease) => api.call("POST", `/v1/leases/${lease}/artifacts`, { artifact, append: true }),
    "working",
    1,
  ],
  "a question": [(api, lease) => api.interrupt(lease), "input_required", 1],
  "a release": [(api, lease) => api.release(lease), "submitted", 1],
  "a reply": [(api, lease) => api.reply(lease), "completed", 1],
  "a failure": [(api, lease) => api.reply(lease, { state: "failed", text: "x" }), "failed", 1],
  "a retryable failure": [
    (api, lease) =>
      api.reply(lease, {
        state: "failed",
        text: undefined,
        error: { code: "busy", message: "x", retryable: true },
      }),
    "submitted",
    2,
  ],
  "an A2A message": [a2a(message), "completed", 1],
  "an A2A task that works": [a2a(task("working")), "working", 1],
  "an A2A question": [a2a(task("input-required")), "input_required", 1],
  "an A2A task that was canceled": [a2a(task("canceled")), "canceled", 1],
};

test("each call of the holder of a lapsed lease reclaims it, and does what it does", async () => {
  const world = await setup();
  for (const [what, [call, state, attempt]] of Object.entries(CALLS)) {
    const { id, lease } = await lapsed(world);
    const { status } = await call(world.scout, lease);
    const { body } = await world.api.get(id);
    expect([what, status, body.state, body.attempt]).toEqual([what, 200, state, attempt]);
    const events = await eventsOf(world.api, id);
    checkHistory(events, body.finished_at === null ? "live" : "finished");
    const statuses = events.map((event) => event.status);
    expect(statuses.slice(statuses.indexOf("lease_expired"))[1]).toBe("reclaimed");
    expect(events.find((event) => event.status === "reclaimed")).toMatchObject({
      attempt: 1,
      worker_id: "w1",
    });
    await world.api.cancel(id);
  }
});

test("the old holder and a new one never both have the work", async () => {
  const world = await setup({ backoff: { initial_ms: 0 } });
  const { api, scout } = world;
  const { id, lease } = await lapsed(world);
  const second = client((await world.another()).url, scout.token);
  const [next] = (await second.lease("scout")).body.leases;
  expect(next).toMatchObject({ attempt: 2, delegation: { id, artifacts: [] } });
  for (const [call] of Object.values(CALLS))
    expect(await call(scout, lease)).toMatchObject({ status: 409, body: { code: "lease_lost" } });
  expect((await api.get(id)).body).toMatchObject({ state: "working", attempt: 2 });
  expect((await second.reply(next.lease_id)).body.outcome).toBe("matched");
});

test("a parked poll does not get reclaimed work, whose ticket is gone", async () => {
  const world = await setup({ backoff: { initial_ms: 0 } });
  const { api, gateway, scout, redis } = world;
  const { id, lease } = await lapsed(world);
  await api.call("POST", "/v1/agents/scout/pause");
  const poll = api.lease("scout", { wait_seconds: 0.5 });
  await until(() => gateway.broker.handoff.polls.countAll() === 1);
  expect((await scout.heartbeat(lease)).status).toBe(200);
  await api.call("POST", "/v1/agents/scout/resume");
  expect((await poll).body.leases).toEqual([]);
  for (const list of ["wait", "active", "paused"])
    expect(await redis.llen(`{errand:0}:q:scout:${list}`)).toBe(0);
  expect((await api.get(id)).body.state).toBe("working");
});

test("work comes back to an agent that is paused, or at max_working", async () => {
  const world = await setup({ limits: { max_attempts: 2, max_working: 1 } });
  const { api, scout } = world;
  const { id, lease } = await lapsed(world);
  await api.delegate("scout");
  expect((await api.lease("scout")).body.leases).toHaveLength(1);
  await api.call("POST", "/v1/agents/scout/pause");
  expect((await scout.reply(lease)).body.outcome).toBe("matched");
  expect((await api.get(id)).body).toMatchObject({ state: "completed", attempt: 1, artifacts: [artifact] });
});

test("two calls of the holder at once reclaim the lease once", async () => {
  const world = await setup();
  const { id, lease } = await lapsed(world);
  const other = client((await world.another()).url, world.scout.token);
  const answers = await Promise.all([
    world.scout.heartbeat(lease),
    other.heartbeat(lease),
    world.scout.heartbeat(lease),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  const statuses = (await eventsOf(world.api, id)).map(({ status }) => status);
  expect(statuses.filter((status) => status === "reclaimed")).toHaveLength(1);
});
