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
