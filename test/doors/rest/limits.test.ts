import { expect, test } from "vitest";
import { LIMITS } from "../../../src/schema/limits.ts";
import { as, client, startBroker } from "../../support/broker.ts";
import { dump } from "../../support/dump.ts";
import { setFields } from "../../support/record.ts";
import { openStream } from "../../support/sse.ts";
import { until } from "../../support/until.ts";

async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker(options);
  const api = client(broker.url);
  await api.agent("scout");
  const record = (id: string) => `{errand:0}:d:${id}`;
  const leased = async () => {
    const { id } = (await api.delegate("scout")).body;
    const { leases } = (await api.lease("scout")).body;
    return { id: String(id), lease: String(leases[0].lease_id) };
  };
  return { ...broker, api, leased, record };
}

/** Without the end of the lease, which a refused holder still extends. */
async function dumpButLease(redis: Parameters<typeof dump>[0]) {
  const state = await dump(redis);
  const all = Object.entries(state).filter(([key]) => key !== "{errand:0}:due");
  return all.map(([key, value]) =>
    typeof value === "object" ? [key, { ...value, lease_expires_at: "", confirm_by: "" }] : [key, value],
  );
}

test("progress faster than the limit changes nothing, and is accepted again a second later", async () => {
  const { api, leased, redis, record, clock } = await setup();
  const { id, lease } = await leased();
  expect((await api.heartbeat(lease, { progress: { done: 1 } })).status).toBe(200);
  await setFields(redis, record(id), { pace_count: LIMITS.progress_per_second.value });
  // A long window, so that a slow machine does not reach the next one.
  await setFields(redis, record(id), { pace_at: Date.now() + 60_000 });

  const before = await dumpButLease(redis);
  const chunk = { artifact: { artifactId: "a", parts: [{ text: "x" }] } };
  for (const answer of [
    await api.heartbeat(lease, { progress: { done: 2 } }),
    await api.call("POST", `/v1/leases/${lease}/artifacts`, chunk),
  ]) {
    expect(answer.status).toBe(429);
    expect(answer.body).toMatchObject({ code: "rate_limited", delegation_id: id, delegation_valid: true });
    expect(answer.headers.get("retry-after")).toBe("1");
  }
  expect(await dumpButLease(redis)).toEqual(before);
  expect((await api.heartbeat(lease)).status).toBe(200);

  // Within the lease, which the heartbeat without progress extended.
  clock.offset_ms = 59_000;
  await setFields(redis, record(id), { pace_at: Date.now() + clock.offset_ms - 1_001 });
  expect((await api.heartbeat(lease, { progress: { done: 3 } })).status).toBe(200);
  expect((await api.get(id)).body.progress).toEqual({ done: 3 });
});

test("a delegation at its event limit accepts no more progress, but can finish", async () => {
  const { api, leased, redis, record } = await setup();
  const { id, lease } = await leased();
  await setFields(redis, record(id), { version: LIMITS.delegation_events.value });
  const before = await dumpButLease(redis);
  const beaten = await api.heartbeat(lease, { progress: { done: 1 } });
  expect([beaten.status, beaten.body]).toEqual([
    200,
    { expires_at: expect.any(String), state: "working", messages: [], progress_dropped: true },
  ]);
  const artifact = { artifactId: "a", parts: [{ text: "x" }] };
  for (const refused of [
    await api.call("POST", `/v1/leases/${lease}/artifacts`, { artifact }),
    await api.message(id, "more"),
    await api.interrupt(lease, { text: "?" }),
  ]) {
    expect([refused.status, refused.body.code, refused.body.retryable, refused.body.details]).toEqual([
      409,
      "limit_reached",
      false,
      { limit: "delegation_events", maximum: LIMITS.delegation_events.value },
    ]);
  }
  expect(await dumpButLease(redis)).toEqual(before);
  expect((await api.heartbeat(lease, { checkpoint: { at: 1 } })).body.progress_dropped).toBeUndefined();
  expect((await api.reply(lease)).body.delegation.state).toBe("completed");
});

test("the polls of each principal are bounded separately; a poll that ends makes room", async () => {
  const { url, gateway, api } = await setup({ quotas: { polls: 1 } });
  const scout = await as(url, "agent:scout");
  const alice = await as(url, "caller:alice");
  const parked = scout.lease("scout", { wait_seconds: 60 });
  await until(() => gateway.broker.handoff.polls.countAll() === 1);

  const refused = await scout.lease("scout", { wait_seconds: 60 });
  expect([refused.status, refused.body.code, refused.body.details]).toEqual([
    429,
    "quota_exceeded",
    { quota: "polls", limit: 1 },
  ]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  // A request that does not wait does not count as a poll.
  expect((await scout.lease("scout", { wait_seconds: 0 })).status).toBe(200);

  const { id } = (await alice.delegate("scout")).body;
  const lease = (await parked).body.leases[0].lease_id;
  expect((await scout.heartbeat(lease, { wait_seconds: 0.1 })).status).toBe(200);
  const waiting = alice.get(id, "?wait_seconds=60");
  await until(async () => (await alice.get(id, "?wait_seconds=1")).status === 429);
  // A refused wait accepted nothing.
  const before = (await api.call("GET", "/v1/delegations")).body.delegations.length;
  expect((await alice.delegate("scout", {}, { prefer: "wait=1" })).body.code).toBe("quota_exceeded");
  expect((await api.call("GET", "/v1/delegations")).body.delegations).toHaveLength(before);

  expect((await scout.reply(lease)).status).toBe(200);
  expect((await waiting).body.state).toBe("completed");
  expect((await alice.get(id, "?wait_seconds=1")).status).toBe(200);
});

test("a reply with `next` beyond the quota is refused, and changes nothing", async () => {
  const { url, gateway, api, redis } = await setup({ quotas: { polls: 1 } });
  const scout = await as(url, "agent:scout");
  await api.delegate("scout");
  const lease = (await scout.lease("scout")).body.leases[0].lease_id;
  const parked = scout.lease("scout", { wait_seconds: 60 });
  await until(() => gateway.broker.handoff.polls.countAll() === 1);
  const before = await dump(redis);
  const refused = await scout.reply(lease, { next: { wait_seconds: 5 } });
  expect([refused.status, refused.body.code]).toEqual([429, "quota_exceeded"]);
  expect(await dump(redis)).toEqual(before);
  await api.delegate("scout");
  expect((await parked).body.leases).toHaveLength(1);
  const second = await scout.reply(lease, { next: { wait_seconds: 0.1 } });
  expect(second.body).toMatchObject({ outcome: "matched", leases: [] });
});

test("one principal's streams are bounded; the operator's are not; a stream that ends makes room", async () => {
  const { url, api, gateway } = await setup({ quotas: { streams: 1 } });
  const { token } = (await api.call("POST", "/v1/tokens", { principal: "caller:alice" })).body;
  const alice = client(url, token);
  const { id } = (await alice.delegate("scout")).body;
  const path = `${url}/v1/delegations/${id}/events`;
  const first = await openStream(path, { token });
  await first.has("DELEGATION_SNAPSHOT");
  const second = await alice.call("GET", `/v1/delegations/${id}/events`, undefined, {
    accept: "text/event-stream",
  });
  expect([second.status, second.body.code]).toEqual([429, "quota_exceeded"]);
  for (const own of [await openStream(path), await openStream(path)]) await own.has("DELEGATION_SNAPSHOT");
  first.close();
  const isFree = () => gateway.broker.quotas.inUse({ text: "caller:alice" }, "streams") === 0;
  await until(isFree);
  // A response without a body releases its stream at once.
  const headers = { authorization: `Bearer ${token}` };
  expect((await fetch(path, { method: "HEAD", headers })).status).toBe(200);
  await until(isFree);
  const both = await Promise.all([openStream(path, { token }), openStream(path, { token })]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 429]);
  await both.find(({ status }) => status === 200)?.has("DELEGATION_SNAPSHOT");
});
