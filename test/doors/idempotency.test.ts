import { describe, expect, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { dump } from "../support/dump.ts";

async function setup(spec: unknown = {}) {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout", spec);
  const send = (key: string, body: Record<string, unknown> = {}, by = api, headers = {}) =>
    by.delegate("scout", { task: "once", ...body }, { "idempotency-key": key, ...headers });
  const count = async () => (await broker.redis.zcard("{errand:0}:live:scout:submitted")).valueOf();
  return { ...broker, api, send, count };
}

describe("the same key and body", () => {
  test("answer with the first delegation as it stands now, whatever the order of the members", async () => {
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

  test("make one delegation, however many ask at once through two gateways", async () => {
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

  test("wait for the end when asked to", async () => {
    const { api, send } = await setup();
    await send("k");
    const waiting = send("k", {}, api, { prefer: "wait=10" });
    const { leases } = (await api.lease("scout")).body;
    await api.reply(leases[0].lease_id);
    expect(await waiting).toMatchObject({ status: 200, body: { state: "completed" } });
  });
});

test("a replay is found whatever has become of the agent since", async () => {
  const { url, api, send } = await setup();
  const alice = await as(url, "caller:alice");
  const { id } = (await send("k", {}, alice)).body;
  await api.agent("scout", { accepts_from: ["caller:bob"] });
  expect(await send("k", {}, alice)).toMatchObject({ status: 200, body: { id } });
  expect((await send("new", {}, alice)).body.code).toBe("not_accepted");
  await api.call("DELETE", "/v1/agents/scout?force=true");
  expect(await send("k", {}, alice)).toMatchObject({ status: 200, body: { id, state: "canceled" } });
});

test("another body is refused and leaves nothing", async () => {
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

test("a refusal is not kept: the same key may try again, or carry another body", async () => {
  const { api, send } = await setup({ limits: { max_waiting: 1 } });
  await api.delegate("scout");
  expect((await send("same")).body.code).toBe("queue_full");
  expect((await send("other")).body.code).toBe("queue_full");
  await api.agent("scout");
  expect((await send("same")).status).toBe(202);
  expect((await send("other", { task: "changed" })).status).toBe(202);
  expect((await send("other", { task: "once" })).body.code).toBe("idempotency_conflict");
});

test("a reservation whose gateway died before the submit is taken up by the retry", async () => {
  const { send, redis, count } = await setup();
  const { id } = (await send("k")).body;
  // What a death between reservation and submit leaves: the key, and no record.
  await redis.del(`{errand:0}:d:${id}`);
  await redis.zrem("{errand:0}:live:scout:submitted", id);
  expect(await send("k")).toMatchObject({ status: 202, body: { id } });
  expect(await count()).toBe(1);
});

test("a key that no header can carry safely is refused", async () => {
  const { send } = await setup();
  expect((await send("x".repeat(256))).body).toMatchObject({ code: "invalid_request" });
});

test("a key whose delegation came to be is not free, though a request with it was refused", async () => {
  const { send, redis } = await setup();
  const { id } = (await send("k")).body;
  const [name = ""] = await redis.keys("errand:idempotency:*");
  // What two requests at once leave, one of which was too late for a place in the queue.
  await redis.append(name, " refused");
  expect(await send("k", { task: "other" })).toMatchObject({
    status: 422,
    body: { code: "idempotency_conflict", delegation_id: id },
  });
  expect(await send("k")).toMatchObject({ status: 200, body: { id } });
});

test.each([
  [60_000, 60_000],
  [30 * 86_400_000, 86_400_000],
])(
  "with a retention of %i ms a key is kept for %i ms, also where it changes hands",
  async (retentionMs, kept) => {
    const { url, redis } = await startBroker({ retentionMs });
    const api = client(url);
    await api.agent("scout", { limits: { max_waiting: 1 } });
    const send = (key: string, task: string) => api.delegate("scout", { task }, { "idempotency-key": key });
    const left = async () =>
      Promise.all((await redis.keys("errand:idempotency:*")).map((name) => redis.pttl(name)));
    await send("k", "once");
    await send("refused", "once");
    await send("refused", "other");
    const times = await left();
    expect(times).toHaveLength(2);
    for (const ms of times) {
      expect(ms).toBeLessThanOrEqual(kept);
      expect(ms).toBeGreaterThan(kept - 30_000);
    }
  },
);
