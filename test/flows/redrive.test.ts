import { expect, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { dump } from "../support/dump.ts";

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout", { limits: { max_attempts: 1 } });
  const alice = await as(broker.url, "caller:alice");
  const failed = async (code = "broken", more: Record<string, unknown> = {}) => {
    const { id } = (await alice.delegate("scout", more)).body;
    const [lease] = (await api.lease("scout")).body.leases;
    await api.reply(lease.lease_id, { state: "failed", text: undefined, error: { code, message: "no" } });
    return String(id);
  };
  return { ...broker, api, alice, failed };
}

test("a failed delegation is redriven once: the same work, for the same delegator", async () => {
  const { alice, api, failed } = await setup();
  const message = { messageId: "mine", parts: [{ text: "dig" }, { data: { depth: 3 } }] };
  const id = await failed("broken", { message, priority: 7, metadata: { a: 1 }, context_id: "ctx-1" });
  const again = await api.redrive(id);
  expect(again.status).toBe(202);
  expect(again.headers.get("location")).toBe(`/v1/delegations/${again.body.id}`);
  expect(again.body).toMatchObject({
    state: "submitted",
    redrive_of: id,
    delegator: "caller:alice",
    priority: 7,
    metadata: { a: 1 },
    context_id: "ctx-1",
    message: { ...message, metadata: { delegation_id: again.body.id } },
  });
  expect(again.body.id).not.toBe(id);
  expect((await alice.redrive(id)).body.id).toBe(again.body.id);
  const redriven_as = again.body.id;
  expect((await api.get(id)).body).toMatchObject({ state: "failed", redrive_of: null, redriven_as });
  expect(again.body.redriven_as).toBeNull();
  expect((await api.lease("scout")).body.leases[0].delegation.id).toBe(again.body.id);
});

test("only a failed delegation can be redriven, and only by its delegator and the operator", async () => {
  const { url, alice, api, failed, redis } = await setup();
  const id = await failed();
  expect((await (await as(url, "approver:ann")).redrive(id)).body.code).toBe("forbidden");
  expect((await (await as(url, "caller:bob")).redrive(id)).body.code).toBe("delegation_not_found");
  const live = (await alice.delegate("scout")).body.id;
  const before = await dump(redis);
  expect((await alice.redrive(live)).body.code).toBe("wrong_state");
  expect(await dump(redis)).toEqual(before);
  await api.cancel(live);
  expect((await alice.redrive(live)).body.code).toBe("wrong_state");
});

test("a redrive that was refused can be tried again", async () => {
  const { api, alice, failed } = await setup();
  const id = await failed();
  await api.agent("scout", { limits: { max_waiting: 1 } });
  await alice.delegate("scout");
  expect((await api.redrive(id)).body.code).toBe("queue_full");
  await api.agent("scout");
  expect((await api.redrive(id)).status).toBe(202);
});

test("a redrive gets the time that the failed delegation had, also when its deadline is years away", async () => {
  const { api, failed } = await setup();
  const deadline = new Date(Date.now() + 3 * 365 * 86_400_000).toISOString();
  const id = await failed("broken", { deadline });
  const again = await api.redrive(id);
  expect(again.status).toBe(202);
  const off = Date.parse(again.body.deadline_at) - Date.parse(deadline);
  expect(off).toBeGreaterThanOrEqual(0);
  expect(off).toBeLessThan(60_000);
});

test("in bulk, a delegation that is refused or cannot be read does not stop the others", async () => {
  const { url, api, failed, redis, gateway } = await setup();
  const first = await failed();
  const bob = await as(url, "caller:bob");
  const bobs = (await bob.delegate("scout")).body.id;
  const [lease] = (await api.lease("scout")).body.leases;
  await api.reply(lease.lease_id, { state: "failed", error: { code: "broken", message: "no" } });
  const spoilt = await failed();
  await redis.hset(gateway.broker.shards.ofId(spoilt)?.delegation(spoilt) ?? "", "message", "{broken");
  const second = await failed();
  await api.agent("scout", { accepts_from: ["caller:alice"] });
  const { status, body } = await api.call("POST", "/v1/delegations/redrive", { target: "scout" });
  expect(status).toBe(202);
  expect(body.delegations.map((made: { redrive_of: string }) => made.redrive_of)).toEqual([second, first]);
  expect(body.refused).toMatchObject([
    { delegation_id: spoilt, code: "internal" },
    { delegation_id: bobs, code: "not_accepted" },
  ]);
  expect(body.next_before).toBeNull();
});

test("in bulk: the newest first, by code and age, each once, page by page", async () => {
  const { url, api, alice, failed } = await setup();
  const first = await failed("broken");
  await failed("other");
  const third = await failed("broken");
  const bulk = (more: Record<string, unknown>) =>
    api.call("POST", "/v1/delegations/redrive", { target: "scout", error_code: "broken", ...more });
  const one = await bulk({ limit: 1 });
  expect([one.status, one.body.delegations.map((made: { redrive_of: string }) => made.redrive_of)]).toEqual([
    202,
    [third],
  ]);
  const rest = await bulk({ limit: 10, before: one.body.next_before });
  expect(rest.body.delegations.map((made: { redrive_of: string }) => made.redrive_of)).toEqual([first]);
  expect(rest.body.next_before).toBeNull();
  expect((await bulk({})).body.delegations).toEqual([]);
  expect((await alice.call("POST", "/v1/delegations/redrive", { target: "scout" })).body.code).toBe(
    "forbidden",
  );

  const canceled = await api.call("POST", "/v1/delegations/cancel", { target: "scout", limit: 100 });
  expect(canceled.body.delegations).toHaveLength(2);
  expect((await api.call("GET", "/v1/delegations?target=scout&state=submitted")).body.delegations).toEqual(
    [],
  );
  expect(
    (await (await as(url, "caller:bob")).call("POST", "/v1/delegations/cancel", { target: "scout" })).status,
  ).toBe(403);
});

test("a batch: each item is accepted or refused on its own, in order; a repeated key finds its first delegation", async () => {
  const { api, alice } = await setup();
  await api.agent("smith", { accepts_from: [] });
  const delegations = [
    { target: "scout", task: "one", idempotency_key: "k1" },
    { target: "nobody", task: "two" },
    { target: "scout", tsak: "three" },
    { target: "smith", task: "four" },
    { target: "scout", task: "five", idempotency_key: 5 },
    { target: "scout", task: "six" },
  ];
  const send = (headers?: Record<string, string>) =>
    alice.call("POST", "/v1/delegations/batch", { delegations }, headers);
  const { status, body } = await send({ "idempotency-key": "batch-1" });
  expect(status).toBe(200);
  const code = ({ error }: { error?: { code: string } }) => error?.code ?? null;
  expect(body.results.map((one: { status: number }) => one.status)).toEqual([202, 404, 400, 403, 400, 202]);
  expect(body.results.map(code)).toEqual([
    null,
    "agent_unknown",
    "invalid_request",
    "not_accepted",
    "invalid_request",
    null,
  ]);
  expect(body.results[2].error.details.issues.map((issue: { path: string }) => issue.path)).toContain("tsak");
  const again = (await send({ "idempotency-key": "batch-1" })).body.results;
  expect([again[0].status, again[0].delegation.id]).toEqual([200, body.results[0].delegation.id]);
  expect([again[5].status, again[5].delegation.id]).toEqual([200, body.results[5].delegation.id]);
  const order = (await api.lease("scout", { max: 10 })).body.leases;
  expect(order.map((one: { delegation: { task_preview: string } }) => one.delegation.task_preview)).toEqual([
    "one",
    "six",
  ]);
  expect((await alice.call("POST", "/v1/delegations/batch", { delegations: [] })).status).toBe(400);
  const many = Array.from({ length: 101 }, () => ({ target: "scout", task: "x" }));
  expect((await alice.call("POST", "/v1/delegations/batch", { delegations: many })).status).toBe(400);
});

test("a batch says when to retry if a queue is full", async () => {
  const { api, alice } = await setup();
  await api.agent("scout", { limits: { max_waiting: 1 } });
  const delegations = [1, 2].map((n) => ({ target: "scout", task: `${n}` }));
  const { results } = (await alice.call("POST", "/v1/delegations/batch", { delegations })).body;
  expect(results[1]).toMatchObject({
    status: 429,
    error: { code: "queue_full", details: { retry_after_seconds: 5 } },
  });
});

test("a redrive changes nothing else of the failed delegation, and survives its deletion", async () => {
  const { api, failed, clock } = await setup();
  const id = await failed();
  const before = (await api.get(id)).body;
  clock.offset_ms = 60_000;
  const redriven_as = (await api.redrive(id)).body.id;
  expect((await api.get(id)).body).toEqual({ ...before, redriven_as });
});

test("in bulk: the next call redrives the delegations that the first call left over", async () => {
  const { api, failed } = await setup();
  const ids = [await failed(), await failed(), await failed()];
  await api.agent("scout", { limits: { max_waiting: 1, max_attempts: 1 } });
  const bulk = (more: Record<string, unknown> = {}) =>
    api.call("POST", "/v1/delegations/redrive", { target: "scout", ...more });
  const first = await bulk();
  expect([first.status, first.body.delegations.length]).toEqual([202, 1]);
  expect(first.body.next_before).not.toBeNull();
  expect((await bulk({ before: first.body.next_before })).body.code).toBe("queue_full");
  await api.agent("scout");
  const rest = await bulk({ before: first.body.next_before });
  const redriven = [...first.body.delegations, ...rest.body.delegations].map((one) => one.redrive_of);
  expect(redriven.sort()).toEqual(ids.sort());
});
