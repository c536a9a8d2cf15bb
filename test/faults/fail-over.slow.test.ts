import { expect, inject, test } from "vitest";
import { as, client, request, startBroker } from "../support/broker.ts";
import { openRedisLink } from "../support/redis-link.ts";
import { startPair, startServer } from "../support/redis-pair.ts";
import { retryUntilAnswered } from "../support/retry.ts";
import { subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

const BACK_MS = 5_000;
const linesOf = (log: readonly string[], text: string) => log.filter((line) => line.includes(`"${text}"`));
const readyAt = (url: string) => request(url, "GET", "/readyz", { token: null });

test("after a fail-over behind one address the gateway finds the new master, and logs it once", async () => {
  const { master, replica, failOver } = await startPair();
  const proxy = await openRedisLink(master.socket);
  const { url, log } = await startBroker({ redis: { url: `redis://127.0.0.1:${proxy.port}` } });
  const api = client(url);
  await api.agent("scout");
  const { token } = await as(url, "agent:scout");
  const { id } = (await api.delegate("scout", { task: "before" })).body;
  const stream = subscribe([url], token);
  await until(() => stream.events.length === 1);
  await api.agent("idle");
  const parked = retryUntilAnswered(() => api.lease("idle", { wait_seconds: 30 }), 30_000);

  // Open connections stay with the old master, which is a replica now.
  proxy.lead(replica.socket);
  await failOver();
  const idempotent = { "idempotency-key": "after" };
  const after = await retryUntilAnswered(() => api.delegate("scout", { task: "after" }, idempotent), BACK_MS);
  expect(after.status).toBe(202);
  await until(async () => (await readyAt(url)).status === 200, { timeoutMs: BACK_MS });
  const { leases } = (await api.lease("scout", { max: 32 })).body;
  expect(leases.map(({ delegation }: { delegation: { id: string } }) => delegation.id)).toEqual([
    id,
    after.body.id,
  ]);
  // The feed and the wakes also use the new master.
  await until(() => stream.events.some(({ data }) => data.delegation_id === after.body.id));
  const woken = await retryUntilAnswered(() => api.delegate("idle"));
  expect((await parked).body.leases[0].delegation.id).toBe(woken.body.id);
  await until(() => linesOf(log, "Redis is back").length === 1);
  const [away] = linesOf(log, "Redis is away");
  expect(JSON.parse(away ?? "{}")).toMatchObject({ redis: `127.0.0.1:${proxy.port}`, level: "warn" });
  expect(away).toMatch(/READONLY|UNBLOCKED/);
  expect(linesOf(log, "Redis is away")).toHaveLength(1);
}, 120_000);

test("the loss of Redis is one line in the log, and its return another", async () => {
  const proxy = await openRedisLink(inject("redisSocket"));
  const { another, db, log } = await startBroker();
  const target = { url: `redis://127.0.0.1:${proxy.port}/${db}` };
  const { url } = await another({ redis: target, sweepEveryMs: 50 });
  const api = client(url);
  await api.agent("scout");
  const parked = api.lease("scout", { wait_seconds: 20 });
  log.length = 0;
  await proxy.fault("refuse");
  await until(() => linesOf(log, "Redis is away").length === 1);
  for (let n = 0; n < 5; n += 1) expect((await api.delegate("scout")).status).toBe(503);
  await until(() => linesOf(log, "sweep interrupted").length > 5);
  await proxy.heal();
  await until(() => linesOf(log, "Redis is back").length === 1);
  const { id } = (await retryUntilAnswered(() => api.delegate("scout"))).body;
  expect((await parked).body.leases?.[0]?.delegation.id ?? id).toBe(id);
  const said = log.map((line): { level: string; msg: string; redis?: string } => JSON.parse(line));
  const loud = said.filter(({ level }) => level === "warn" || level === "error");
  // The log omits database 0.
  const place = `127.0.0.1:${proxy.port}${db === 0 ? "" : `/${db}`}`;
  expect(loud).toEqual([expect.objectContaining({ msg: "Redis is away", redis: place })]);
  expect(JSON.stringify(loud)).toContain("ECONN");
});

test("a master without enough replicas is answered 503 and not ready, until the replica returns", async () => {
  const { socket, redis } = await startServer();
  const { url } = await startBroker({ redis: { socket } });
  const api = client(url);
  await api.agent("scout");
  await redis.config("SET", "min-replicas-to-write", "1");
  const refused = await api.delegate("scout");
  expect(refused).toMatchObject({ status: 503, body: { code: "redis_unavailable" } });
  expect(refused.body.details.outcome).toBe("not_executed");
  // The refusal makes the gateway reconnect; until it has, the reason differs.
  await until(async () => {
    const { status, body } = await readyAt(url);
    return status === 503 && body.reason.includes("NOREPLICAS");
  });
  expect((await retryUntilAnswered(() => api.call("GET", "/v1/agents/scout"))).status).toBe(200);
  await redis.config("SET", "min-replicas-to-write", "0");
  await until(async () => (await readyAt(url)).status === 200);
  expect((await retryUntilAnswered(() => api.delegate("scout"))).status).toBe(202);
});

test("a Redis that is busy with another client's script is answered 503, and everything works once it ends", async () => {
  const { socket, redis } = await startServer(["busy-reply-threshold 20"]);
  const { url } = await startBroker({ redis: { socket } });
  const api = client(url);
  await api.agent("scout");
  const other = redis.duplicate();
  other.on("error", () => {});
  const looping = other.eval("while true do end", 0).catch(() => null);
  await until(async () =>
    (await redis.set("k", "v").catch((error: Error) => error.message))?.startsWith("BUSY"),
  );
  const refused = await api.delegate("scout");
  expect(refused).toMatchObject({ status: 503, body: { code: "redis_unavailable" } });
  expect((await readyAt(url)).status).toBe(503);
  await redis.call("SCRIPT", "KILL");
  await looping;
  other.disconnect();
  expect((await retryUntilAnswered(() => api.delegate("scout"))).status).toBe(202);
  await until(async () => (await readyAt(url)).status === 200);
});

test("a gateway whose Redis has full memory is ready: work in progress can end", async () => {
  const { socket, redis } = await startServer();
  const { url, another } = await startBroker({ redis: { socket } });
  const api = client(url);
  await api.agent("scout");
  await redis.config("SET", "maxmemory", "1");
  expect((await readyAt(url)).status).toBe(200);
  expect(await until(async () => (await api.delegate("scout")).status === 503)).toBe(true);
  // And another gateway starts on it.
  expect((await readyAt((await another({ redis: { socket } })).url)).status).toBe(200);
});
