import { expect, test } from "vitest";
import { client, startBroker } from "../../support/broker.ts";
import { allowStalls } from "../../support/stalls.ts";
import { until } from "../../support/until.ts";

test("a lease that is never confirmed is returned in the same way", async () => {
  const { url, clock, gateway } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const silent = (await api.lease("scout", { confirm_within_seconds: 5 })).body.leases[0];
  clock.offset_ms = 5_100;
  await gateway.sweep.tick();
  const next = (await api.lease("scout")).body.leases[0];
  expect(next).toMatchObject({ attempt: 1, delegation: { id } });
  const late = await api.reply(silent.lease_id);
  expect(late).toMatchObject({ status: 409, body: { code: "lease_lost", details: { reason: "released" } } });
  expect((await api.reply(next.lease_id)).body.outcome).toBe("matched");
});

test("release puts it before new work, without spending an attempt", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const first = (await api.delegate("scout", { task: "first" })).body.id;
  const lease = (await api.lease("scout")).body.leases[0];
  await api.delegate("scout", { task: "second" });
  const released = await api.release(lease.lease_id, { reason: "going home" });
  expect(released).toMatchObject({ status: 200, body: { delegation: { state: "submitted", attempt: 1 } } });
  expect((await api.lease("scout")).body.leases[0].delegation.id).toBe(first);
});

test("a held heartbeat answers a cancel in milliseconds", async () => {
  const withStalls = allowStalls();
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const lease = (await api.lease("scout")).body.leases[0];
  const held = api.heartbeat(lease.lease_id, { wait_seconds: 20 });
  await until(async () => (await api.get(id)).body.lease.expires_at !== lease.expires_at);
  const canceledAt = Date.now();
  expect((await api.cancel(id, { reason: "changed my mind" })).body).toMatchObject({
    state: "canceled",
    error: { code: "canceled", message: "Canceled by operator: changed my mind" },
  });
  expect(await held).toMatchObject({
    status: 409,
    body: { code: "lease_lost", details: { reason: "canceled" } },
  });
  expect(Date.now() - canceledAt).toBeLessThan(withStalls(500));
});

test("several leases at once, and the next with the reply", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  for (let n = 0; n < 5; n += 1) await api.delegate("scout", { task: `task ${n}` });
  const { leases } = (await api.lease("scout", { max: 3 })).body;
  expect(leases.map((one: { delegation: { task_preview: string } }) => one.delegation.task_preview)).toEqual([
    "task 0",
    "task 1",
    "task 2",
  ]);
  const replied = await api.reply(leases[0].lease_id, { next: { wait_seconds: 0, max: 8 } });
  expect(replied.body.leases).toHaveLength(2);
  const again = await api.reply(leases[0].lease_id, { next: { wait_seconds: 0 } });
  expect(again.body).toMatchObject({ outcome: "duplicate", leases: [] });
});

test("a paused agent gets no work until it is resumed; a full one until it has room", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout", { limits: { max_working: 1 } });
  await api.call("POST", "/v1/agents/scout/pause");
  await api.delegate("scout", { task: "a" });
  await api.delegate("scout", { task: "b" });
  const first = api.lease("scout", { wait_seconds: 10 });
  await until(async () => (await api.call("GET", "/v1/agents/scout")).body.presence.pollers === 1);
  await api.call("POST", "/v1/agents/scout/resume");
  const a = (await first).body.leases[0];
  expect(a.delegation.task_preview).toBe("a");
  const second = api.lease("scout", { wait_seconds: 10 });
  await until(async () => (await api.call("GET", "/v1/agents/scout")).body.presence.pollers === 1);
  await api.reply(a.lease_id);
  expect((await second).body.leases[0].delegation.task_preview).toBe("b");
});

test("work delegated at one gateway wakes a poll that is parked at another", async () => {
  const withStalls = allowStalls();
  const { url, another } = await startBroker();
  const api = client(url);
  const second = await another();
  await api.agent("scout");
  for (let round = 0; round < 10; round += 1) {
    const poll = client(second.url).lease("scout", { wait_seconds: 20 });
    await until(() => second.gateway.broker.handoff.polls.count("scout") === 1);
    const sentAt = Date.now();
    const { id } = (await api.delegate("scout")).body;
    expect((await poll).body.leases[0].delegation.id).toBe(id);
    expect(Date.now() - sentAt).toBeLessThan(withStalls(1_000));
  }
});

test("more room for an agent wakes its parked polls", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout", { limits: { max_working: 1 } });
  for (const task of ["a", "b"]) await api.delegate("scout", { task });
  await api.lease("scout");
  const poll = api.lease("scout", { wait_seconds: 20 });
  await until(async () => (await api.call("GET", "/v1/agents/scout")).body.presence.pollers === 1);
  await api.agent("scout", { limits: { max_working: 2 } });
  expect((await poll).body.leases).toHaveLength(1);
});
