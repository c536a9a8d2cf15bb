/**
 * The memory that the delegations of one delegator may use: the count is exact, and the limit affects no other
 * delegator.
 */
import { expect, test, vi } from "vitest";
import { MemoryGuard } from "../../src/engine/upkeep/memory-guard.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { keptIn } from "../support/kept.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { until } from "../support/until.ts";

const MIB = 1024 * 1024;
/** So large that what an empty Redis uses, and the allocator's rounding, do not bring half of it near the limit of all. */
const MAX = 32 * MIB;
const SHARE = MAX / 2;

test("the count agrees with the records, and a delegator without delegations has no entry", async () => {
  const { url, redis, clock, gateway } = await startBroker({ callbackAllow: ["127.0.0.1"] });
  const api = client(url);
  await api.agent("scout");
  const alice = await as(url, "caller:alice");
  const scout = await as(url, "agent:scout");
  const isExact = async () => {
    const { counted, summed } = await keptIn(redis);
    expect(counted).toEqual(summed);
    return counted["caller:alice"] ?? 0;
  };
  const push = (id: string, name: string) =>
    alice.call("POST", `/a2a/scout/rest/tasks/${id}/pushNotificationConfigs?A2A-Version=1.0`, {
      ...{ id: name, url: "http://127.0.0.1:1/", token: "t".repeat(100) },
    });
  const working = async () => {
    const { id } = (await alice.delegate("scout")).body;
    return { id: String(id), lease: String((await scout.lease("scout")).body.leases[0].lease_id) };
  };
  const artifact = (lease: string, text: string, append = false) =>
    scout.call("POST", `/v1/leases/${lease}/artifacts`, {
      ...{ artifact: { artifactId: "a", parts: [{ text }] }, append },
    });

  const one = await working();
  const small = await isExact();
  await alice.message(one.id, "m".repeat(1_000));
  expect(await isExact()).toBeGreaterThan(small + 2_000);
  await scout.heartbeat(one.lease, { progress: { message: "p".repeat(1_000) } });
  for (const [text, append] of [
    ["x".repeat(5_000), false],
    ["y", false],
    ["z".repeat(100), true],
  ] as const) {
    expect((await artifact(one.lease, text, append)).status).toBeLessThan(300);
    await isExact();
  }
  expect((await push(one.id, "p1")).status).toBe(201);
  const pushed = await isExact();
  expect((await push(one.id, "p1")).status).toBe(201);
  expect(await isExact()).toBe(pushed);
  await scout.release(one.lease);
  expect(await isExact()).toBeLessThan(pushed);

  // Every kind of end, one of them with a secret.
  const again = (await scout.lease("scout")).body.leases[0].lease_id;
  const { interrupt_id } = (await scout.interrupt(again, { kind: "auth", text: "key?" })).body;
  expect((await alice.answer(one.id, interrupt_id, { text: "s".repeat(2_000) })).status).toBe(200);
  await isExact();
  await scout.reply((await scout.lease("scout")).body.leases[0].lease_id, { text: "r".repeat(100) });
  await isExact();
  const failed = await working();
  const error = { code: "broken", message: "it broke", retryable: true };
  for (let tries = 0; tries < 3; tries += 1) {
    const lease = tries === 0 ? failed.lease : null;
    clock.offset_ms += 3_600_000 / 60;
    await gateway.sweep.tick();
    const held = lease ?? (await scout.lease("scout")).body.leases[0]?.lease_id;
    if (held) await scout.reply(held, { state: "failed", text: undefined, error });
    await isExact();
  }
  const canceled = (await alice.delegate("scout", { parent_id: undefined })).body.id;
  await alice.cancel(canceled);
  await isExact();
  expect(
    (await alice.delegate("scout", { callback: { url: "http://127.0.0.1:1/" }, ttl_seconds: 1 })).status,
  ).toBe(202);
  clock.offset_ms += 2_000;
  await gateway.sweep.tick();
  await isExact();

  expect((await alice.erase(canceled)).status).toBe(204);
  await isExact();
  await alice.cancel(failed.id);
  expect((await alice.erase(one.id)).status).toBe(204);
  expect(await isExact()).toBeGreaterThan(0);
  for (let rounds = 0; rounds < 3; rounds += 1) {
    clock.offset_ms += 3_601_000;
    await gateway.sweep.tick();
  }
  expect(await isExact()).toBe(0);
  expect(await redis.exists("{errand:0}:kept")).toBe(0);
});

async function limited(limit: { max: number }) {
  const broker = await startBroker();
  await client(broker.url).agent("scout");
  vi.spyOn(broker.gateway.broker.memory, "maxKeptBytes").mockImplementation(({ kind }) =>
    kind === "operator" ? undefined : limit.max,
  );
  return { ...broker, api: client(broker.url), alice: await as(broker.url, "caller:alice") };
}

const REFUSED = { status: 429, body: { code: "quota_exceeded", details: { quota: "kept_bytes" } } };

test("beyond its share a delegator cannot add follow-ups and push configs either; its agent's output is accepted", async () => {
  const limit = { max: 12_000 };
  const { redis, api, alice } = await limited(limit);
  const { id } = (await alice.delegate("scout")).body;
  const [{ lease_id }] = (await api.lease("scout")).body.leases;
  const kept = async () => (await keptIn(redis)).counted["caller:alice"] ?? 0;
  expect((await alice.message(id, "short")).status).toBe(202);
  expect(await alice.message(id, "m".repeat(4_000))).toMatchObject(REFUSED);
  limit.max = (await kept()) + 100;
  const push = { id: "p", url: "https://example.com/", token: "t".repeat(100) };
  const path = `/a2a/scout/rest/tasks/${id}/pushNotificationConfigs?A2A-Version=1.0`;
  expect((await alice.call("POST", path, push)).status).toBe(429);
  expect(await kept()).toBe(limit.max - 100);
  // The operator may still send a follow-up, and the agent may send its output.
  expect((await api.message(id, "m".repeat(4_000))).status).toBe(202);
  const artifact = { artifactId: "a", parts: [{ text: "x".repeat(50_000) }] };
  expect((await api.call("POST", `/v1/leases/${lease_id}/artifacts`, { artifact })).status).toBeLessThan(300);
  expect((await api.reply(lease_id)).status).toBe(200);
});

test("idempotency keys that outlive their delegations count until they are deleted", async () => {
  const { redis, alice, clock } = await limited({ max: 20_000 });
  let n = 0;
  const round = async () => {
    n += 1;
    const answer = await alice.delegate("scout", {}, { "idempotency-key": `k${n}` });
    if (answer.status !== 202) return answer;
    await alice.cancel(answer.body.id);
    expect((await alice.erase(answer.body.id)).status).toBe(204);
    return answer;
  };
  expect((await round()).status).toBe(202);
  const counted = async () => redis.hget("{errand:0}:kept:keys", "caller:alice");
  const [day = "", bytes] = (await counted())?.split(" ") ?? [];
  expect(Number(bytes)).toBeGreaterThan(232);
  expect(await redis.exists("{errand:0}:kept")).toBe(0);
  await redis.hset("{errand:0}:kept:keys", "caller:alice", `${day} 16000 0`);
  expect(await round()).toMatchObject(REFUSED);
  const DAY = 86_400_000;
  clock.offset_ms += DAY;
  expect(await round()).toMatchObject(REFUSED);
  clock.offset_ms += DAY;
  expect((await round()).status).toBe(202);
  // Keys of older days have expired, and a delegation without a key adds none.
  const before = `${day} 20000 20000`;
  await redis.hset("{errand:0}:kept:keys", "caller:alice", before);
  const { status, body } = await alice.delegate("scout");
  expect(status).toBe(202);
  await alice.cancel(body.id);
  await alice.erase(body.id);
  expect(await counted()).toBe(before);
});

async function shared() {
  const { redis, target } = await startOwnRedis("everysec");
  await redis.config("SET", "maxmemory", String(MAX));
  const { url, gateway } = await startBroker({ redis: target });
  const api = client(url);
  await api.agent("scout");
  const used = async () => Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
  return {
    redis,
    url,
    gateway,
    api,
    used,
    alice: await as(url, "caller:alice"),
    bob: await as(url, "caller:bob"),
  };
}

test.each([
  ["large tasks", 200_000, 1],
  ["large replies", 1, 200_000],
  ["small ones", 1, 1],
])(
  "one delegator's %s take no more than its share, and only its own new work is refused",
  async (_, task, reply) => {
    const { redis, url, gateway, api, used, alice, bob } = await shared();
    const before = await used();
    const ids: string[] = [];
    let refused = null;
    while (refused === null) {
      const delegations = Array.from({ length: task + reply > 2 ? 4 : 100 }, () => ({
        target: "scout",
        task: "x".repeat(task),
      }));
      const { results } = (await alice.call("POST", "/v1/delegations/batch", { delegations })).body;
      for (const { status, delegation, error } of results) {
        if (status === 202) ids.push(delegation.id);
        // On a busy machine Redis reads late, and for a moment counts what is on its way to it: that is no refusal of her.
        else if (error.code !== "overloaded") refused ??= error;
      }
      if (reply === 1) continue;
      for (let empty = false; !empty; ) {
        // One at a time: Redis counts what is on its way to it, and may read late on a busy machine.
        const { leases } = (await api.lease("scout", { wait_seconds: 0, max: 1 })).body;
        empty = leases.length === 0;
        await Promise.all(
          leases.map((one: { lease_id: string }) => api.reply(one.lease_id, { text: "x".repeat(reply) })),
        );
      }
    }
    expect(refused).toMatchObject({
      ...{ code: "quota_exceeded", status: 429, retryable: true },
      details: { quota: "kept_bytes", limit_bytes: SHARE, retry_after_seconds: 60 },
    });
    expect(refused.recovery).toContain("ERRAND_DELEGATOR_PERCENT");
    const grown = (await used()) - before;
    expect(grown).toBeLessThan(0.7 * MAX);
    expect(grown).toBeGreaterThan(0.3 * MAX);

    // Others and the operator may still delegate. Her work in progress continues, and erasing makes room again.
    // Redis may still count what it has not sent, which is memory that nobody has for a moment.
    const accepted = async (by: typeof api) => {
      const { status, body } = await by.delegate("scout");
      if (status !== 202) expect(body.code).toBe("overloaded");
      return status === 202;
    };
    await until(() => accepted(bob), { what: "another delegator's work to be accepted" });
    await until(() => accepted(api), { what: "the operator's work to be accepted" });
    const once = { "idempotency-key": "k" };
    const again = await until(async () => {
      const answer = await alice.delegate("scout", { task: "x".repeat(task) }, once);
      return answer.body.code === "overloaded" ? undefined : answer;
    });
    expect([again.status, again.headers.get("retry-after")]).toEqual([429, "60"]);
    expect((await client(url, alice.token).get(ids[0] ?? "")).status).toBe(200);
    for (const id of ids.slice(0, 20)) {
      await alice.cancel(id);
      expect((await alice.erase(id)).status).toBe(204);
    }
    // Redis frees the buffers of its clients with a delay; until then, memory may be short for everybody.
    await until(async () => {
      const { status } = await alice.delegate("scout", { task: "x".repeat(task) }, once);
      expect([202, 503]).toContain(status);
      return status === 202;
    });
    expect(gateway.broker.memory.isReached()).toBe(false);
    // Last, because it reads every record, and Redis counts what it sends.
    const { counted, summed } = await keptIn(redis);
    expect(counted).toEqual(summed);
  },
);

test("the limit follows maxmemory, the setting and the shards; at 100 percent, without maxmemory and for the operator there is none", async () => {
  const { redis } = await startOwnRedis("everysec");
  const most = async (
    options?: { percent?: number; shards?: number },
    kind: "caller" | "operator" = "caller",
  ) => {
    const pressure = new MemoryGuard(redis, options);
    await pressure.check();
    return pressure.maxKeptBytes({ kind });
  };
  await redis.config("SET", "maxmemory", "0");
  expect(await most()).toBeUndefined();
  await redis.config("SET", "maxmemory", String(MAX));
  expect(await most()).toBe(SHARE);
  expect(await most({ percent: 10, shards: 4 })).toBe(Math.floor(MAX / 40));
  expect(await most({ percent: 100 })).toBeUndefined();
  expect(await most({}, "operator")).toBeUndefined();
});
