/** A broker with 4 shards on a Redis Cluster of three masters and their replicas: whole stories, a slot that moves, a kill. */
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { checkTarget } from "../../src/redis/check.ts";
import { keys } from "../../src/redis/keys.ts";
import { Shards } from "../../src/redis/shards.ts";
import { AGENT_APIS, DELEGATOR_APIS } from "../support/apis.ts";
import { type Answer, as, client, request, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { testRedisBinary } from "../support/redis-server.ts";
import { retryUntilAnswered } from "../support/retry.ts";
import { subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

const SHARDS = 4;
const shards = new Shards(SHARDS);
let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startRedisCluster({ binary: await testRedisBinary(), nodeTimeoutMs: 1_000 });
});
afterAll(() => cluster?.stop());

async function start() {
  await cluster.flush();
  const broker = await startBroker({ redis: { url: cluster.url }, shards: SHARDS, sweepEveryMs: 100 });
  return { ...broker, api: client(broker.url) };
}

/** One agent of each shard. */
const AGENTS = shards.all.map((_, shard) => {
  const name = Array.from({ length: 100 }, (_n, n) => `agent-${n}`).find(
    (one) => shards.indexOfAgent(one) === shard,
  );
  if (name === undefined) throw new Error("no such agent");
  return name;
});

test("a story through each API, on each side", async () => {
  const { url } = await start();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const stream = subscribe([url], alice.token);
  const ids: string[] = [];
  const callers = Object.values(DELEGATOR_APIS);
  const agents = Object.values(AGENT_APIS);
  for (const [n, open] of callers.entries()) {
    const caller = await open(url, alice.token);
    const agent = await agents[n % agents.length]?.(url, scout.token);
    if (!agent) throw new Error("no agent");
    const id = await caller.delegate("greet");
    const lease = await agent.lease();
    await agent.progress(lease, "halfway");
    await agent.ask(lease, "input", "French or English?");
    await caller.answer(id, await caller.asked(id), [{ text: "French" }]);
    await agent.complete(await agent.lease(), "Bonjour", { name: "words.txt", text: "all of them" });
    expect(await caller.ended(id)).toMatchObject({ state: "completed", text: "Bonjour" });
    checkHistory(await eventsOf(alice, id), "finished");
    ids.push(id);
  }
  await until(() =>
    ids.every((id) => stream.events.filter(({ data }) => data.delegation_id === id).length === 7),
  );
});

test("every shard's work, lists, results, trees and idempotency keys, at two gateways", async () => {
  const { api, another, url } = await start();
  // One node is enough to find the others.
  const { target, status, refused } = await checkTarget({ url: cluster.url.split(",")[0] ?? "" });
  expect([status.masters, refused]).toEqual([3, []]);
  const second = client((await another({ redis: target })).url);
  for (const name of AGENTS) expect((await api.agent(name)).status).toBe(201);
  const stream = subscribe([url], (await as(url, "viewer:wall")).token);
  const sent = await Promise.all(
    AGENTS.flatMap((name) =>
      [1, 2, 3].map((n) => api.delegate(name, { task: `${n}` }, { "idempotency-key": `${name}-${n}` })),
    ),
  );
  const ids = sent.map(({ status, body }) => (status === 202 ? String(body.id) : `${status}`));
  expect(new Set(ids.map((id) => shards.indexOfId(id))).size).toBe(SHARDS);
  const again = await second.delegate(
    AGENTS[0] ?? "",
    { task: "1" },
    { "idempotency-key": `${AGENTS[0]}-1` },
  );
  expect(again.body.id).toBe(ids[0]);
  // Parked at the other gateway, so wakes go through pub/sub and the feed.
  for (const name of AGENTS) {
    const { leases } = (await second.lease(name, { max: 3 })).body;
    const [first] = leases;
    const worker = await as(url, `agent:${name}`);
    const child = await worker.delegate(AGENTS[(AGENTS.indexOf(name) + 1) % SHARDS] ?? "", {
      parent_id: first.delegation.id,
    });
    expect(child.status).toBe(202);
    for (const { lease_id } of leases) expect((await second.reply(lease_id)).status).toBe(200);
    ids.push(String(child.body.id));
  }
  const { body } = await api.call("GET", "/v1/delegations?limit=100");
  expect(body.delegations.map(({ id }: { id: string }) => id).sort()).toEqual([...ids].sort());
  const parked = second.lease(AGENTS[3] ?? "", { wait_seconds: 20 });
  const woken = await api.delegate(AGENTS[3] ?? "");
  const got = (await parked).body.leases[0].delegation.id;
  expect([woken.body.id, ...ids]).toContain(got);
  await until(() => ids.every((id) => stream.events.some(({ data }) => data.delegation_id === id)));
  const revoked = await as(url, "caller:bob");
  const open = subscribe([(await another()).url], revoked.token);
  await until(() => open.isOpen());
  expect((await api.call("DELETE", `/v1/tokens/${revoked.tokenId}`)).status).toBe(204);
  await until(() => !open.isOpen());
  expect((await api.call("GET", "/v1/status")).body.redis).toMatchObject({ masters: 3, source: "external" });
});

/** The most delegations that the load sends before they are worked on. */
const AHEAD = 4;

/** Sends work for an agent and does it, until it is stopped. */
function load(url: string, agent: string) {
  const api = client(url);
  const sent = new Set<string>();
  const finished = new Set<string>();
  const odd: unknown[] = [];
  let isStopped = false;
  let isAllSent = false;
  const checked = async (call: () => Promise<Answer>) => {
    const answer = await call();
    // A lease may be lost: its grant was not replicated, or it expired during the outage.
    if (![200, 202, 204, 404, 409, 503].includes(answer.status)) odd.push([answer.status, answer.body]);
    return answer;
  };
  const send = async () => {
    for (let n = 0; !isStopped; n += 1) {
      await until(() => isStopped || sent.size - finished.size < AHEAD);
      const key = `${agent}-${n}`;
      const { status, body } = await checked(() =>
        api.delegate(agent, { task: key }, { "idempotency-key": key }),
      );
      if (status === 202) sent.add(String(body.id));
      else n -= 1;
    }
  };
  const work = async () => {
    // A request that was on its way at the stop still adds work.
    while (!isAllSent || finished.size < sent.size) {
      const { body } = await checked(() => api.lease(agent, { wait_seconds: 0.2, lease_seconds: 5 }));
      for (const { lease_id, delegation } of body?.leases ?? []) {
        const { status } = await checked(() => api.reply(lease_id));
        if (status === 200) finished.add(delegation.id);
      }
    }
  };
  const sending = Promise.all([send(), send()]).then(() => {
    isAllSent = true;
  });
  const done = Promise.all([sending, work(), work()]);
  // After a failed test the gateway is gone.
  done.catch(() => {});
  const stop = () => {
    isStopped = true;
  };
  return { sent, finished, odd, stop, done };
}

const HALF_WAY: Readonly<Record<string, (name: string) => boolean>> = {
  "the records are still at the old master": (name) => !name.includes(":d:"),
  "only the records are at the new master": (name) => name.includes(":d:"),
};

test.each(Object.entries(HALF_WAY))(
  "a slot that moves under load refuses its work meanwhile, and leaves nothing half-done: %s",
  async (_, first) => {
    const { url, api, another, log } = await start();
    const [agent = "", elsewhere = ""] = AGENTS;
    for (const name of AGENTS) await api.agent(name);
    const keys = shards.ofAgent(agent);
    const stream = subscribe([url], (await as(url, "viewer:wall")).token);
    const running = load(url, elsewhere);
    onTestFinished(() => running.stop());
    const { id } = (await api.delegate(agent, { task: "leased" })).body;
    const [{ lease_id }] = (await api.lease(agent)).body.leases;
    const waiting = (await api.delegate(agent, { task: "waiting" })).body;
    const from = await cluster.masterOf(keys.events);
    const to = (await cluster.masters()).find(({ port }) => port !== from.port);
    if (!to) throw new Error("no other master");

    let lateStream: typeof stream | undefined;
    await cluster.moveSlot(keys.events, to, first, async () => {
      const refused = await Promise.all([
        api.delegate(agent, { task: "refused" }),
        api.reply(lease_id),
        api.heartbeat(lease_id, { progress: { message: "halfway" } }),
        api.cancel(waiting.id),
        api.lease(agent, { wait_seconds: 0 }),
        // A read does not show what is only half there.
        api.get(id),
      ]);
      for (const { status, body } of refused.slice(0, -1)) {
        expect([status, body?.code, body?.details?.outcome]).toEqual([
          503,
          "redis_unavailable",
          "not_executed",
        ]);
      }
      expect(refused.at(-1)?.status).toBe(503);
      // A gateway that starts now serves the other shards at once, and this one later.
      const late = await another({ redis: { url: cluster.url } });
      const sent = await client(late.url).delegate(elsewhere, { task: "at a new gateway" });
      expect(sent.status).toBe(202);
      lateStream = subscribe([late.url], (await as(url, `agent:${agent}`)).token);
    });
    const moves = log.filter((line) => line.includes("a slot of the Cluster is moving"));
    expect(moves).toHaveLength(1);
    expect(log.join("")).not.toContain("Redis is away");
    expect((await cluster.masterOf(keys.events)).port).toBe(to.port);

    const { leases } = (await retryUntilAnswered(() => api.lease(agent))).body;
    expect(leases.map(({ delegation }: { delegation: { id: string } }) => delegation.id)).toEqual([
      waiting.id,
    ]);
    expect((await api.reply(leases[0].lease_id)).status).toBe(200);
    expect((await api.reply(lease_id)).status).toBe(200);
    const after = (await api.delegate(agent, { task: "after" })).body.id;
    for (const one of [id, waiting.id]) checkHistory(await eventsOf(api, one), "finished");
    checkHistory(await eventsOf(api, after), "live");
    expect((await cluster.client.zrange(keys.list("all"), 0, "-1")).sort()).toEqual(
      [id, waiting.id, after].sort(),
    );
    for (const one of [stream, lateStream])
      await until(() => one?.events.some(({ data }) => data.delegation_id === after));
    running.stop();
    await running.done;
    expect(running.odd).toEqual([]);
    await Promise.all(
      [...running.sent].map(async (one) => checkHistory(await eventsOf(api, one), "finished")),
    );
    // The next test expects each shard where it was.
    await cluster.moveSlot(keys.events, from);
  },
);

test("a gateway is ready without a few masters, but not without the tokens' one or most of them", async () => {
  const { url, api } = await start();
  for (const name of AGENTS) await api.agent(name);
  const masters = await cluster.masters();
  const common = await cluster.masterOf(keys.tokens);
  const others = masters.filter(({ port }) => port !== common.port);
  const [other] = others;
  if (!other) throw new Error("no other master");
  const readiness = async () => {
    const { status, body } = await request(url, "GET", "/readyz", { token: null });
    return `${status} ${body.status}`;
  };
  const isReady = () => until(async () => (await readiness()) === "200 ready", { what: "readiness" });
  /** These masters refuse writes meanwhile. */
  const without = async (nodes: typeof masters, expected: string) => {
    const needReplicas = (count: string) =>
      Promise.all(nodes.map(({ redis }) => redis.config("SET", "min-replicas-to-write", count)));
    await needReplicas("9");
    await until(async () => (await readiness()) === expected, { what: expected });
    const answers = await Promise.all(AGENTS.map((name) => api.delegate(name)));
    await needReplicas("0");
    await isReady();
    return answers.map(({ status }) => status);
  };
  await isReady();
  const places = await Promise.all(
    AGENTS.map(async (name) => (await cluster.masterOf(shards.ofAgent(name).events)).port),
  );
  expect(await without([other], "200 degraded")).toEqual(
    places.map((port) => (port === other.port ? 503 : 202)),
  );
  await without([common], "503 not_ready");
  await without(others, "503 not_ready");

  // Nor does a master that delays writes delay the answer.
  await other.redis.client("PAUSE", 600_000, "WRITE");
  expect(await readiness()).toMatch(/^200/);
  await other.redis.client("UNPAUSE");
  await isReady();
});

test("the death of a master is answered, and everything goes on with its replica", async () => {
  const { url, api } = await start();
  for (const name of AGENTS) await api.agent(name);
  const [agent = ""] = AGENTS;
  const stream = subscribe([url], (await as(url, "viewer:wall")).token);
  const running = load(url, agent);
  onTestFinished(() => running.stop());
  await until(() => running.finished.size > 5);
  const master = await cluster.masterOf(shards.ofAgent(agent).events);
  master.signal("SIGKILL");
  const readiness = async () => (await request(url, "GET", "/readyz", { token: null })).body.status;
  await until(async () => (await readiness()) !== "ready");
  await until(async () => (await readiness()) === "ready");
  const soFar = running.finished.size;
  await until(() => running.finished.size > soFar + 5);
  const { body } = await retryUntilAnswered(() => api.delegate(agent, { task: "after" }));
  await until(() => stream.events.some(({ data }) => data.delegation_id === body.id));
  running.stop();
  await running.done;
  expect(running.odd).toEqual([]);
});
