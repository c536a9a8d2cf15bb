/** Idempotency keys: one key makes one delegation, and a refused submit leaves none. */

import { describe, expect, test, vi } from "vitest";
import type { Gateway } from "../../../src/gateway/gateway.ts";
import type { Redis } from "../../../src/redis/connect.ts";
import { ErrandError } from "../../../src/schema/errors.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import { as, client, startBroker, type TestOptions } from "../../support/broker.ts";
import { dump, keysIn } from "../../support/dump.ts";

async function setup(spec: unknown = {}, options: TestOptions = {}) {
  const broker = await startBroker(options);
  const api = client(broker.url);
  await api.agent("scout", spec);
  const send = (key: string, body: Record<string, unknown> = {}, by = api, headers = {}) =>
    by.delegate("scout", { task: "once", ...body }, { "idempotency-key": key, ...headers });
  const count = async () => (await broker.redis.zcard("{errand:0}:live:scout:submitted")).valueOf();
  return { ...broker, api, send, count };
}

describe("the same key and body", () => {
  test("return the first delegation in its current state, for any order of the members", async () => {
    const { api, send } = await setup();
    const first = await send("k", { metadata: { a: 1, b: 2 } });
    expect(first.status).toBe(202);
    expect(first.headers.get("idempotency-replayed")).toBeNull();
    const { leases } = (await api.lease("scout")).body;
    await api.reply(leases[0].lease_id, { text: "answer" });
    const again = await send("k", { metadata: { b: 2, a: 1 } });
    expect(again).toMatchObject({ status: 200, body: { id: first.body.id, state: "completed" } });
    expect(again.headers.get("idempotency-replayed")).toBe("true");
  });

  test("create one delegation for any number of simultaneous requests at two gateways", async () => {
    const { url, another, send, count } = await setup();
    const second = client((await another()).url);
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        send(`key-${n % 20}`, { task: `t${n % 20}` }, n % 2 ? second : client(url)),
      ),
    );
    expect(answers.every(({ status }) => status === 202 || status === 200)).toBe(true);
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(20);
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(20);
    expect(await count()).toBe(20);
  });

  test("wait for the result if the request says so", async () => {
    const { api, send } = await setup();
    await send("k");
    const waiting = send("k", {}, api, { prefer: "wait=10" });
    const { leases } = (await api.lease("scout")).body;
    await api.reply(leases[0].lease_id);
    expect(await waiting).toMatchObject({ status: 200, body: { state: "completed" } });
  });
});

test("a replay is found even if the agent has changed or is gone", async () => {
  const { url, api, send } = await setup();
  const alice = await as(url, "caller:alice");
  const { id } = (await send("k", {}, alice)).body;
  await api.agent("scout", { accepts_from: ["caller:bob"] });
  expect(await send("k", {}, alice)).toMatchObject({ status: 200, body: { id } });
  expect((await send("new", {}, alice)).body.code).toBe("not_accepted");
  await api.call("DELETE", "/v1/agents/scout?force=true");
  expect(await send("k", {}, alice)).toMatchObject({ status: 200, body: { id, state: "canceled" } });
});

test("another body is refused and leaves no data", async () => {
  const { send, redis } = await setup();
  const { id } = (await send("k")).body;
  const before = await dump(redis);
  expect(await send("k", { task: "other" })).toMatchObject({
    status: 422,
    body: { code: "idempotency_conflict", delegation_id: id },
  });
  expect(await dump(redis)).toEqual(before);
});

test("a key is its principal's own", async () => {
  const { url, send } = await setup();
  const alice = await as(url, "caller:alice");
  const bob = await as(url, "caller:bob");
  const ids = [await send("k"), await send("k", {}, alice), await send("k", { task: "x" }, bob)];
  expect(new Set(ids.map(({ body }) => body.id)).size).toBe(3);
});

test("a refusal is not stored: the same key may be retried, also with another body", async () => {
  const { api, send, redis } = await setup({ limits: { max_waiting: 1 } });
  await api.delegate("scout");
  const before = await dump(redis);
  expect((await send("same")).body.code).toBe("queue_full");
  expect((await send("other")).body.code).toBe("queue_full");
  expect(await dump(redis)).toEqual(before);
  await api.agent("scout");
  expect((await send("same")).status).toBe(202);
  expect((await send("other", { task: "changed" })).status).toBe(202);
  expect((await send("other", { task: "once" })).body.code).toBe("idempotency_conflict");
});

describe("a refusal leaves no data", () => {
  test.each([
    ["agent_unknown", { target: "nobody" }],
    ["invalid_request", { deadline: "2020-01-01T00:00:00Z" }],
    ["invalid_request", { callback: { url: "http://127.0.0.1:1/" } }],
    ["delegation_not_found", { parent_id: "dlg_0_00000000000000000000000000" }],
  ])("%s", async (code, body) => {
    const { send, redis } = await setup();
    const before = await dump(redis);
    for (const key of ["one", "two"]) expect((await send(key, body)).body.code).toBe(code);
    expect(await dump(redis)).toEqual(before);
  });

  test("not_accepted and overloaded", async () => {
    const { url, send, redis, gateway } = await setup({ accepts_from: ["caller:bob"] });
    const alice = await as(url, "caller:alice");
    const bob = await as(url, "caller:bob");
    const before = await dump(redis);
    expect((await send("k", {}, alice)).body.code).toBe("not_accepted");
    vi.spyOn(gateway.broker.memory, "requireRoom").mockImplementation(() => {
      throw new ErrandError("overloaded", "full");
    });
    expect((await send("k", {}, bob)).body.code).toBe("overloaded");
    expect(await dump(redis)).toEqual(before);
  });

  test.each([{}, { "idempotency-key": "k" }])(
    "with a parent, not in the parent's children either: %o",
    async (headers) => {
      const { api, redis } = await setup();
      const { id } = (await api.delegate("scout")).body;
      await api.agent("full", { limits: { max_waiting: 1 } });
      await api.delegate("full");
      expect((await api.delegate("full", { parent_id: id }, headers)).body.code).toBe("queue_full");
      expect(await redis.exists(`{errand:0}:d:${id}:children`)).toBe(0);
      expect(await keysOf(redis)).toEqual([]);
    },
  );
});

test("a retry completes a reservation whose gateway died before the submit", async () => {
  const { send, redis, count } = await setup();
  const { id } = (await send("k")).body;
  // A death between reservation and submit leaves the key without a record.
  await redis.del(`{errand:0}:d:${id}`);
  await redis.zrem("{errand:0}:live:scout:submitted", id);
  expect(await send("k")).toMatchObject({ status: 202, body: { id } });
  expect(await count()).toBe(1);
});

test("a key with characters unsafe in a header is refused", async () => {
  const { send } = await setup();
  expect((await send("x".repeat(256))).body).toMatchObject({ code: "invalid_request" });
});

test("a key with a delegation is not free, even after a refused request with that key", async () => {
  const { send, redis } = await setup();
  const { id } = (await send("k")).body;
  const [name = ""] = await keysIn(redis, "errand:idempotency:*");
  // Two simultaneous requests, one of which found the queue full, leave this.
  await redis.append(name, " refused");
  expect(await send("k", { task: "other" })).toMatchObject({
    status: 422,
    body: { code: "idempotency_conflict", delegation_id: id },
  });
  expect(await send("k")).toMatchObject({ status: 200, body: { id } });
});

const DAY_MS = 86_400_000;
const keysOf = (redis: Redis) => keysIn(redis, "errand:idempotency:*");

describe("a key is stored as long as its delegation's record, and for a day at least", () => {
  /** A finished delegation with the key `k`, whose record was deleted after the retention time. */
  async function finish({ api, send, gateway, clock }: Awaited<ReturnType<typeof setup>>, afterMs: number) {
    const { id } = (await send("k")).body;
    const [lease] = (await api.lease("scout")).body.leases;
    await api.reply(lease.lease_id);
    clock.offset_ms += afterMs;
    await gateway.sweep.tick();
    expect((await api.get(id)).status).toBe(404);
    return id;
  }

  test("while it may still be live: to its deadline, and the retention time after it", async () => {
    const { send, redis } = await setup({}, { retentionMs: 60_000 });
    await send("k", { ttl_seconds: 3 * 86_400 });
    const [name = ""] = await keysOf(redis);
    expect(await redis.pttl(name)).toBeGreaterThan(3 * DAY_MS + 60_000);
    expect(await redis.pttl(name)).toBeLessThan(4 * DAY_MS + 120_000);
  });

  test("after its record is deleted a replay is refused, and creates no second delegation", async () => {
    const broker = await setup({}, { retentionMs: 60_000 });
    const { send, redis, count } = broker;
    const id = await finish(broker, 61_000);
    const [name = ""] = await keysOf(redis);
    const left = await redis.pttl(name);
    expect(left).toBeLessThan(DAY_MS - 60_000);
    expect(left).toBeGreaterThan(DAY_MS - 120_000);
    const gone = {
      status: 409,
      body: { code: "already_finished", delegation_id: id, delegation_valid: false },
    };
    expect(await send("k")).toMatchObject(gone);
    expect(await send("k", { task: "other" })).toMatchObject({
      status: 422,
      body: { code: "idempotency_conflict", delegation_id: id },
    });
    // A retry that read the key before it was retired.
    await redis.set(name, ((await redis.get(name)) ?? "").split(" gone")[0] ?? "");
    expect(await send("k")).toMatchObject(gone);
    expect(await count()).toBe(0);
  });

  test("a record deleted after more than a day takes its key with it", async () => {
    const broker = await setup({}, { retentionMs: 2 * DAY_MS });
    await finish(broker, 2 * DAY_MS + 1_000);
    const [name = ""] = await keysOf(broker.redis);
    expect(await broker.redis.pttl(name)).toBeLessThanOrEqual(60_000);
  });
});

describe("an agent that was deleted and created again has no keys", () => {
  async function recreatedAgent(before: "submitted" | "reserved") {
    const broker = await setup();
    const { url, api, send, redis } = broker;
    await api.agent("writer");
    const { id } = (await send("k", {}, await as(url, "agent:writer"))).body;
    if (before === "reserved") await redis.del(`{errand:0}:d:${id}`);
    await api.call("DELETE", "/v1/agents/writer?force=true");
    await api.agent("writer");
    return { ...broker, id, writer: await as(url, "agent:writer") };
  }

  test("does not get the earlier agent's delegation", async () => {
    const { send, writer, id } = await recreatedAgent("submitted");
    const own = await send("k", {}, writer);
    expect(own.status).toBe(202);
    expect(own.body.id).not.toBe(id);
    expect((await send("k", {}, writer)).body.id).toBe(own.body.id);
  });

  test.each(["submitted", "reserved"] as const)(
    "another body is not refused because of them: %s",
    async (before) => {
      const { send, writer } = await recreatedAgent(before);
      expect((await send("k", { task: "other" }, writer)).status).toBe(202);
    },
  );
});

describe("a key that was refused can be used by another request", () => {
  test("while a submit in progress loses its id", async () => {
    const { send, count, gateway, redis } = await setup();
    const { held, release } = holdSubmit(gateway);
    const slow = send("k");
    await held;
    // Another request with the same body is refused meanwhile.
    await redis.hset("{errand:0}:agent:scout", "max_waiting", 0);
    expect((await send("k")).body.code).toBe("queue_full");
    const [mark = "", ...others] = await keysIn(redis, "{errand:0}:d:*");
    expect(others).toEqual([]);
    expect(await redis.ttl(mark)).toBeGreaterThan(LIMITS.void_minutes.value * 60 - 60);
    expect(await redis.ttl(mark)).toBeLessThanOrEqual(LIMITS.void_minutes.value * 60);
    expect(await keysOf(redis)).toEqual([]);
    await redis.hset("{errand:0}:agent:scout", "max_waiting", 10);
    const other = await send("k", { task: "other" });
    expect(other.status).toBe(202);
    release();
    expect(await slow).toMatchObject({ status: 422, body: { delegation_id: other.body.id } });
    expect(await count()).toBe(1);
  });

  test("but a submit in progress keeps it while no other body took it", async () => {
    const { send, count, gateway, redis } = await setup();
    const { held, release } = holdSubmit(gateway);
    const slow = send("k");
    await held;
    await redis.hset("{errand:0}:agent:scout", "max_waiting", 0);
    expect((await send("k")).body.code).toBe("queue_full");
    await redis.hset("{errand:0}:agent:scout", "max_waiting", 10);
    release();
    const { status, body } = await slow;
    expect(status).toBe(202);
    expect(await send("k")).toMatchObject({ status: 200, body: { id: body.id } });
    expect(await count()).toBe(1);
  });

  test("an id that was voided before its gateway died is not used again", async () => {
    const { send, count, redis } = await setup();
    const { id } = (await send("k")).body;
    await redis.del(`{errand:0}:d:${id}`);
    await redis.zrem("{errand:0}:live:scout:submitted", id);
    await redis.hset(`{errand:0}:d:${id}`, "voided", 1);
    const again = await send("k");
    expect(again.status).toBe(202);
    expect(again.body.id).not.toBe(id);
    expect(await send("k")).toMatchObject({ status: 200, body: { id: again.body.id } });
    expect(await count()).toBe(1);
  });

  test.each(["once", "other"])(
    "a key that a killed gateway left voiding can be used by the next request: %s",
    async (task) => {
      const { send, redis, count } = await setup();
      const { id } = (await send("k")).body;
      await redis.del(`{errand:0}:d:${id}`);
      await redis.zrem("{errand:0}:live:scout:submitted", id);
      const [name = ""] = await keysOf(redis);
      await redis.append(name, " voiding");
      expect((await send("k", { task })).status).toBe(202);
      expect((await send("k", { task: "third" })).body.code).toBe("idempotency_conflict");
      expect(await count()).toBe(1);
    },
  );
});

/** Delays the next submit. */
function holdSubmit({ broker }: Gateway) {
  const { writer } = broker;
  const [held, reached] = signal();
  const [released, release] = signal();
  const original = writer.move.bind(writer);
  vi.spyOn(writer, "move").mockImplementationOnce(async (...args) => {
    reached();
    await released;
    return original(...args);
  });
  return { held, release };
}

function signal(): [promise: Promise<void>, resolve: () => void] {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return [promise, resolve];
}
