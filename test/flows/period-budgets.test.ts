import { expect, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";

async function setup() {
  const broker = await startBroker({ shards: 7 });
  // Noon of a day in the middle of a month: no test crosses either by itself.
  const now = Date.now();
  broker.clock.offset_ms = Date.UTC(2030, 5, 15, 12) - now;
  const api = client(broker.url);
  await api.agent("scout", { budgets: { day: { tokens: 100 }, month: { cost: 1, currency: "USD" } } });
  const alice = await as(broker.url, "caller:alice");
  const scout = await as(broker.url, "agent:scout");
  const started = async () => {
    const { id } = (await alice.delegate("scout")).body;
    const [lease] = (await scout.lease("scout", { lease_seconds: 3_600 })).body.leases;
    expect(lease.delegation.id).toBe(id);
    return String(lease.lease_id);
  };
  return { ...broker, api, alice, scout, started };
}

test("an agent that has used its budget of the day gets no new work until the next one; work in progress goes on", async () => {
  const { clock, alice, scout, started } = await setup();
  const [first, second] = [await started(), await started()];
  for (let n = 0; n < 2; n += 1)
    await scout.heartbeat(first, { usage: { input_tokens: 50, output_tokens: 20 } });
  expect((await alice.delegate("scout")).status).toBe(202);
  await scout.heartbeat(second, { usage: { input_tokens: 30 } });
  const refused = await alice.delegate("scout", {}, { "idempotency-key": "k" });
  expect([refused.status, refused.body.code]).toEqual([429, "budget_exhausted"]);
  expect(refused.body.detail).toBe("Agent 'scout' has used 100 of 100 tokens for this day (UTC).");
  expect(refused.body.details).toEqual({
    agent: "scout",
    period: "day",
    amount: "tokens",
    used: 100,
    limit: 100,
    resets_at: "2030-06-16T00:00:00.000Z",
  });
  const wait = Number(refused.headers.get("retry-after"));
  expect(wait).toBeGreaterThan(43_000);
  expect(wait).toBeLessThanOrEqual(43_200);
  expect((await scout.reply(second, { usage: { input_tokens: 35 } })).status).toBe(200);
  clock.offset_ms += wait * 1_000;
  expect((await alice.delegate("scout", {}, { "idempotency-key": "k" })).status).toBe(202);
});

test("the budget of a month counts only costs in its currency, over its days, and the repeat of accepted work is no new work", async () => {
  const { clock, alice, scout, started } = await setup();
  const accepted = await alice.delegate("scout", {}, { "idempotency-key": "k" });
  const leases = (await scout.lease("scout", { lease_seconds: 3_600 })).body.leases;
  await scout.heartbeat(leases[0].lease_id, { usage: { cost: 5, currency: "EUR" } });
  await scout.heartbeat(await started(), { usage: { cost: 0.3, currency: "USD" } });
  clock.offset_ms += 86_400_000;
  const second = await started();
  await scout.heartbeat(second, { usage: { cost: 0.69, currency: "USD" } });
  expect((await alice.delegate("scout")).status).toBe(202);
  await scout.heartbeat(second, { usage: { cost: 0.7, currency: "USD" } });
  expect((await alice.delegate("scout")).body.details).toMatchObject({
    period: "month",
    amount: "cost",
    used: 1,
    limit: 1,
    resets_at: "2030-07-01T00:00:00.000Z",
  });
  const repeated = await alice.delegate("scout", {}, { "idempotency-key": "k" });
  expect(repeated.body.id).toBe(accepted.body.id);
});

test("only the operator changes budgets; others do not see them, and an agent keeps them", async () => {
  const { api, alice, scout } = await setup();
  const budgets = { day: { tokens: 100 }, month: { cost: 1, currency: "USD" } };
  const own = (method: string, body: unknown) => scout.call(method, "/v1/agents/scout", body);
  expect((await own("PATCH", { budgets: null })).body.code).toBe("forbidden");
  expect((await own("PATCH", { budgets: { day: { tokens: 101 } } })).body.code).toBe("forbidden");
  expect((await own("PUT", { description: "mine" })).body).toMatchObject({ description: "mine", budgets });
  expect((await alice.call("GET", "/v1/agents/scout")).body).not.toHaveProperty("budgets");
  for (const [wrong, path] of [
    [{ day: { tokens: -1 } }, "budgets.day.tokens"],
    [{ day: {} }, "budgets"],
    [{ month: { cost: 1 } }, "budgets"],
    [{ month: { cost: 1, currency: "ZZZ" } }, "budgets.month.currency"],
    [{ year: { tokens: 1 } }, "budgets.year"],
  ] as const) {
    const { body } = await api.agent("scout", { budgets: wrong });
    expect([body.code, body.details.issues[0].path]).toEqual(["invalid_request", path]);
  }
  const less = await api.call("PATCH", "/v1/agents/scout", { budgets: { day: { tokens: 7 } } });
  expect(less.body.budgets).toEqual({ ...budgets, day: { tokens: 7 } });
  const patched = async (change: object) =>
    (await api.call("PATCH", "/v1/agents/scout", { budgets: change })).body;
  expect((await patched({ day: { tokens: null, cost: 2, currency: "USD" } })).budgets).toEqual({
    ...budgets,
    day: { cost: 2, currency: "USD" },
  });
  expect((await patched({ day: { cost: null } })).details.issues[0].path).toBe("budgets");
  expect((await patched({ day: null })).budgets).toEqual({ month: budgets.month });
  expect((await api.call("PATCH", "/v1/agents/scout", { budgets: null })).body).not.toHaveProperty("budgets");
});
