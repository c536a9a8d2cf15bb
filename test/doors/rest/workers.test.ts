/** The workers of an agent: found by polls and by leases, and who may see them. */
import { expect, test } from "vitest";
import { Admin } from "../../../src/client/admin.ts";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

test("workers that poll and workers that hold leases are listed, with their delegations", async () => {
  const { url, another } = await startBroker();
  const second = await another();
  const admin = client(url);
  const library = new Admin({ url, token: OPERATOR });
  await admin.agent("scout");
  const ids = [];
  for (let n = 0; n < 2; n += 1) ids.push((await admin.delegate("scout")).body.id);
  await admin.lease("scout", { worker_id: "busy", max: 2 });
  await client(second.url).lease("scout", { worker_id: "idle", wait_seconds: 0 });
  await client(second.url).lease("scout", { wait_seconds: 0 });
  const names = async () => (await library.listWorkers("scout")).map(({ id }) => id).sort();
  await until(async () => (await names()).length === 3);
  expect(await names()).toEqual(["busy", "idle", "scout"]);
  const workers = await library.listWorkers("scout");
  expect(workers.find(({ id }) => id === "busy")?.delegations.sort()).toEqual(ids.sort());
  expect(workers.find(({ id }) => id === "idle")?.delegations).toEqual([]);
  for (const { last_seen_at } of workers) {
    expect(Math.abs(Date.parse(last_seen_at) - Date.now())).toBeLessThan(60_000);
  }
  // A new agent of the same name sees nothing of the old one's.
  await admin.call("DELETE", "/v1/agents/scout?force=true");
  await admin.agent("scout");
  expect((await admin.call("GET", "/v1/agents/scout/workers")).body).toEqual({
    workers: [],
    truncated: false,
  });
  expect((await admin.call("GET", "/v1/agents/nobody/workers")).status).toBe(404);
});

test("the agent itself, approvers, viewers and the operator see them", async () => {
  const { url } = await startBroker();
  await client(url).agent("scout");
  const statuses: Record<string, number> = {};
  for (const principal of ["agent:scout", "approver:ann", "viewer:eve", "agent:other", "caller:alice"]) {
    statuses[principal] = (await (await as(url, principal)).call("GET", "/v1/agents/scout/workers")).status;
  }
  expect(statuses).toEqual({
    "agent:scout": 200,
    "approver:ann": 200,
    "viewer:eve": 200,
    "agent:other": 403,
    "caller:alice": 403,
  });
});

test("workers are bounded in number, and cost the polls no command", async () => {
  const { url, gateway, redis } = await startBroker();
  await client(url).agent("scout");
  const { presence } = gateway.broker;
  for (let n = 0; n < 1_500; n += 1) presence.seen("scout", `w${n}`);
  await until(async () => (await redis.zcard("{errand:0}:workers:scout")) > 0);
  expect(await redis.zcard("{errand:0}:workers:scout")).toBe(1_000);
  expect(await redis.pttl("{errand:0}:workers:scout")).toBeGreaterThan(0);
  expect((await client(url).call("GET", "/v1/agents/scout/workers")).body.workers).toHaveLength(1_000);
});

test("paused workers are bounded in number for each agent, the newest pause of each counts, and old ones go", async () => {
  const { url, gateway, redis } = await startBroker();
  const admin = client(url);
  await admin.agent("scout");
  const { presence } = gateway.broker;
  const pause = (id: string, paused_seconds: number, reason: string) =>
    presence.paused("scout", { id, paused_seconds, reason });
  const shown = async () => (await admin.call("GET", "/v1/agents/scout")).body.presence.paused;
  for (let n = 0; n < 30; n += 1) pause(`w${n}`, 60, "offline");
  expect((await until(shown)).workers).toBe(10);
  expect(await redis.hlen("{errand:0}:seen")).toBe(2);
  pause("w29", 0, "offline");
  await until(async () => (await shown())?.workers === 9);
  for (let n = 20; n < 29; n += 1) pause(`w${n}`, 0, "offline");
  await until(async () => (await shown()) === undefined);
  pause("w1", 60, "offline");
  await until(shown);
  await admin.call("DELETE", "/v1/agents/scout?force=true");
  expect(await redis.hlen("{errand:0}:seen")).toBe(0);
});

test("a release or reply with a pause that is no pause changes nothing", async () => {
  const { url } = await startBroker();
  const admin = client(url);
  await admin.agent("scout");
  const { body } = await admin.delegate("scout");
  const { leases } = (await admin.lease("scout")).body;
  const worker = { id: "w", paused_seconds: 5, reason: "offline" };
  for (const bad of [
    { ...worker, paused_seconds: -1 },
    { ...worker, paused_seconds: 86_401 },
    { ...worker, id: "two words" },
    { ...worker, id: "x".repeat(129) },
    { ...worker, reason: "" },
    { ...worker, reason: "x".repeat(201) },
    { ...worker, until: "2030-01-01" },
    "w",
  ]) {
    const released = await admin.release(leases[0].lease_id, { worker: bad });
    const replied = await admin.reply(leases[0].lease_id, { state: "completed", text: "x", worker: bad });
    expect([released.body.code, replied.body.code]).toEqual(["invalid_request", "invalid_request"]);
  }
  expect((await admin.get(body.id)).body).toMatchObject({ state: "working", attempt: 1 });
});
