/** ERRAND_REDIS_WAIT_REPLICAS: what is acknowledged is at the replica, and what is not there is not acknowledged. */
import { expect, test } from "vitest";
import { client, request, startBroker } from "../support/broker.ts";
import { startPair } from "../support/redis-pair.ts";
import { retryUntilAnswered } from "../support/retry.ts";
import { until } from "../support/until.ts";

const readyAt = (url: string) => request(url, "GET", "/readyz", { token: null });

test("a submit and a reply are acknowledged once the replica has them; without it they get 503, and a repeat finds them", async () => {
  const { master, replica } = await startPair();
  const { url } = await startBroker({ redis: { socket: master.socket }, waitReplicas: 1 });
  const api = client(url);
  await api.agent("scout");
  // Many at once share a WAIT.
  const sent = await Promise.all(Array.from({ length: 40 }, () => api.delegate("scout")));
  expect(new Set(sent.map(({ status }) => status))).toEqual(new Set([202]));
  const there = await Promise.all(sent.map(({ body }) => replica.redis.exists(`{errand:0}:d:${body.id}`)));
  expect(there.every((count) => count === 1)).toBe(true);
  const { leases } = (await api.lease("scout", { max: 2 })).body;
  expect((await api.reply(leases[0].lease_id)).status).toBe(200);
  await api.agent("deployer");
  await api.delegate("deployer", { auto_approve: true });
  const [deployment] = (await api.lease("deployer")).body.leases;

  await replica.redis.replicaof("NO", "ONE");
  await until(async () => (await master.redis.info("replication")).includes("connected_slaves:0"));
  const key = { "idempotency-key": "one" };
  const unconfirmed = await api.delegate("scout", { task: "later" }, key);
  expect(unconfirmed).toMatchObject({
    status: 503,
    body: { code: "redis_unavailable", details: { outcome: "unknown" } },
  });
  expect(unconfirmed.body.detail).toContain("replicas");
  expect((await api.reply(leases[1].lease_id)).status).toBe(503);
  // A repeat is not confirmed either.
  expect((await api.delegate("scout", { task: "later" }, key)).status).toBe(503);
  expect((await api.reply(leases[1].lease_id)).status).toBe(503);
  const { status, body } = await readyAt(url);
  expect([status, body.reason]).toEqual([503, expect.stringContaining("0 of 1 replicas confirmed")]);
  // The same holds for an approval in advance, which is an answer.
  const question = { request_id: "deploy", action: { name: "deploy", arguments: {} } };
  expect((await api.interrupt(deployment.lease_id, question)).status).toBe(503);
  // What needs no confirmation goes on.
  expect((await api.lease("scout", { wait_seconds: 0 })).status).toBe(200);

  await replica.redis.replicaof("127.0.0.1", master.port);
  const found = await retryUntilAnswered(() => api.delegate("scout", { task: "later" }, key));
  // 200: an earlier request created it.
  expect(found.status).toBe(200);
  expect(await replica.redis.exists(`{errand:0}:d:${found.body.id}`)).toBe(1);
  expect((await retryUntilAnswered(() => api.reply(leases[1].lease_id))).body).toMatchObject({
    outcome: "duplicate",
  });
  await until(async () => (await readyAt(url)).status === 200);
  const all = (await api.call("GET", "/v1/delegations?limit=100")).body.delegations;
  expect(all.length).toBe(42);
});

test("revocations and changes of agents are acknowledged once the replica has them", async () => {
  const { master, replica } = await startPair();
  const { url } = await startBroker({ redis: { socket: master.socket }, waitReplicas: 1, shards: 1 });
  const api = client(url);
  const make = async () => (await api.call("POST", "/v1/tokens", { principal: "caller:alice" })).body;
  const [one, two] = [await make(), await make()];
  await api.agent("scout");
  const session = (await request(url, "POST", "/v1/sessions", { token: two.token })).body;
  expect((await api.call("DELETE", `/v1/tokens/${one.id}`)).status).toBe(204);
  expect(await replica.redis.hexists("{errand}:tokens", one.id)).toBe(0);

  await replica.redis.replicaof("NO", "ONE");
  await until(async () => (await master.redis.info("replication")).includes("connected_slaves:0"));
  const revoke = [`/v1/sessions/${session.id}`, `/v1/tokens/${two.id}`];
  for (const [method, path, settings] of [
    ["PUT", "/v1/agents/scout", { approvals: "person" }],
    ["POST", "/v1/agents/scout/pause", undefined],
    ["PUT", "/v1/agents/new", {}],
  ] as const) {
    expect((await api.call(method, path, settings)).status).toBe(503);
  }
  for (const path of revoke) {
    const { status, body } = await api.call("DELETE", path);
    expect([status, body.details]).toEqual([503, { outcome: "unknown" }]);
    // A repeat finds it gone, and is not confirmed either.
    expect((await api.call("DELETE", path)).status).toBe(503);
  }
  await replica.redis.replicaof("127.0.0.1", master.port);
  for (const path of revoke) {
    const { status } = await retryUntilAnswered(() => api.call("DELETE", path));
    expect(status).toBe(404);
  }
  expect(await replica.redis.hexists("{errand}:tokens", two.id)).toBe(0);
  // A repeat changes nothing, and waits for what the first one changed.
  expect((await retryUntilAnswered(() => api.call("PUT", "/v1/agents/new", {}))).status).toBe(200);
  expect(await replica.redis.exists("{errand:0}:agent:new")).toBe(1);
});

test("while memory is full, a reply is still confirmed", async () => {
  const { master } = await startPair();
  const { url } = await startBroker({ redis: { socket: master.socket }, waitReplicas: 1 });
  const api = client(url);
  await api.agent("scout");
  await api.delegate("scout");
  const [{ lease_id }] = (await api.lease("scout")).body.leases;
  await master.redis.config("SET", "maxmemory", "1");
  expect((await api.reply(lease_id)).status).toBe(200);
});
