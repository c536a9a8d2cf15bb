import { expect, test, vi } from "vitest";
import { as as actingAs, client, request, startBroker } from "../support/broker.ts";

async function setup(budgets: object) {
  const broker = await startBroker({ shards: 7 });
  // Noon of a day in the middle of a month: no test crosses either by itself.
  broker.clock.offset_ms = Date.UTC(2030, 5, 15, 12) - Date.now();
  const api = client(broker.url);
  for (const name of ["scout", "lead", "writer"]) await api.agent(name, {});
  const tokenFor = async (principal: string, limits: object = {}) =>
    String((await api.call("POST", "/v1/tokens", { principal, ...limits })).body.token);
  const as = async (principal: string, limits: object = {}) =>
    client(broker.url, await tokenFor(principal, limits));
  const workers = {
    scout: await as("agent:scout"),
    lead: await as("agent:lead"),
    writer: await as("agent:writer"),
  };
  const token = await tokenFor("caller:alice", { budgets });
  const alice = client(broker.url, token);
  /** Delegates, and leases what was delegated. */
  const started = async (agent: keyof typeof workers, by = alice, more: Record<string, unknown> = {}) => {
    const { id } = (await by.delegate(agent, more)).body;
    const [lease] = (await workers[agent].lease(agent, { lease_seconds: 3_600 })).body.leases;
    expect(lease.delegation.id).toBe(id);
    return { id: String(id), lease: String(lease.lease_id) };
  };
  const shown = async () => (await alice.call("GET", "/v1/status")).body.budgets;
  return { ...broker, api, as, workers, token, alice, started, shown };
}

test("a delegator whose budget of the day is used up gets no new work until the next one; work in progress goes on", async () => {
  const { url, clock, alice, token, workers, as, started, shown } = await setup({ day: { tokens: 100 } });
  const [one, two] = [await started("scout"), await started("writer")];
  // The same report again, as after an answer that was lost.
  for (let n = 0; n < 3; n += 1)
    await workers.scout.heartbeat(one.lease, { usage: { input_tokens: 60, output_tokens: 39 } });
  const last = await started("lead");
  await workers.writer.heartbeat(two.lease, { usage: { input_tokens: 1 } });
  const used = {
    limit: { tokens: 100 },
    used: { tokens: 100, cost: 0 },
    resets_at: "2030-06-16T00:00:00.000Z",
  };
  expect(await shown()).toEqual({ day: used });
  const refused = await alice.delegate("scout", {}, { "idempotency-key": "k" });
  expect([refused.status, refused.body.code]).toEqual([429, "budget_exhausted"]);
  expect(refused.body.details).toEqual({
    ...{ delegator: "caller:alice", period: "day", amount: "tokens", used: 100, limit: 100 },
    resets_at: "2030-06-16T00:00:00.000Z",
  });
  const wait = Number(refused.headers.get("retry-after"));
  expect(wait).toBeGreaterThan(43_000);
  expect(wait).toBeLessThanOrEqual(43_200);
  // Its sessions, its batches and what it puts under its own work are refused, too; other delegators are not.
  const { body: session } = await request(url, "POST", "/v1/sessions", { token, body: {} });
  expect((await client(url, session.token).delegate("scout")).body.code).toBe("budget_exhausted");
  const batch = { delegations: [{ target: "scout", task: "x" }] };
  const { results } = (await alice.call("POST", "/v1/delegations/batch", batch)).body;
  expect(results[0].error.code).toBe("budget_exhausted");
  expect((await alice.delegate("scout", { parent_id: last.id })).body.code).toBe("budget_exhausted");
  expect((await (await as("caller:bob")).delegate("scout")).status).toBe(202);
  // The agents of work in progress report, delegate parts and reply.
  expect((await workers.lead.delegate("writer", { parent_id: last.id })).status).toBe(202);
  expect((await workers.lead.reply(last.lease, { usage: { input_tokens: 5 } })).status).toBe(200);
  clock.offset_ms += (wait - 60) * 1_000;
  expect((await alice.delegate("scout")).status).toBe(429);
  clock.offset_ms += 60_000;
  expect((await alice.delegate("scout", {}, { "idempotency-key": "k" })).status).toBe(202);
  expect((await shown()).day.used.tokens).toBe(0);
});

test("what agents delegate further counts for the delegator of the root, and for nobody between", async () => {
  const { as, alice, workers, started, shown } = await setup({
    month: { tokens: 60, cost: 1, currency: "USD" },
  });
  const lead = await as("agent:lead", { budgets: { month: { tokens: 1 } } });
  const root = await started("lead");
  const part = await started("writer", lead, { parent_id: root.id });
  const below = await started("scout", workers.writer, { parent_id: part.id });
  await workers.scout.heartbeat(below.lease, { usage: { cost: 0.1, currency: "USD" } });
  await workers.writer.heartbeat(part.lease, { usage: { cost: 0.2, currency: "USD" } });
  await workers.lead.heartbeat(root.lease, { usage: { input_tokens: 40, cost: 7, currency: "EUR" } });
  expect((await shown()).month.used).toEqual({ tokens: 40, cost: 0.3 });
  expect((await lead.call("GET", "/v1/status")).body.budgets.month.used.tokens).toBe(0);
  await workers.scout.reply(below.lease, { usage: { output_tokens: 20, cost: 0.1, currency: "USD" } });
  expect((await alice.delegate("scout")).body.details).toMatchObject({
    period: "month",
    amount: "tokens",
    used: 60,
  });
  // The lead's own trees count for the lead, with what is delegated under them.
  const own = await started("writer", lead);
  await workers.writer.heartbeat(own.lease, { usage: { input_tokens: 1 } });
  expect((await lead.delegate("writer")).body.details).toMatchObject({ delegator: "agent:lead", used: 1 });
  expect((await lead.delegate("writer", { parent_id: root.id })).status).toBe(202);
  expect((await shown()).month.used.tokens).toBe(60);
});

test("the tokens of a principal share the count, each has its limit, and a month ends with its last day", async () => {
  const { clock, api, as, alice, workers, started } = await setup({ month: { tokens: 10 } });
  const more = await as("caller:alice", { budgets: { day: { tokens: 15 } } });
  const free = await as("caller:alice");
  const first = await started("scout");
  await workers.scout.reply(first.lease, { state: "failed", usage: { input_tokens: 8 } });
  const second = await started("writer", more);
  await workers.writer.heartbeat(second.lease, { usage: { input_tokens: 4 } });
  const uncounted = await started("lead", free);
  await workers.lead.heartbeat(uncounted.lease, { usage: { input_tokens: 99 } });
  expect((await alice.delegate("scout")).body.details).toMatchObject({ used: 12, limit: 10 });
  expect((await alice.call("POST", `/v1/delegations/${first.id}/redrive`)).body.code).toBe(
    "budget_exhausted",
  );
  expect((await more.delegate("scout")).status).toBe(202);
  clock.offset_ms = Date.UTC(2030, 5, 30, 23, 59) - Date.now();
  expect((await more.call("GET", "/v1/status")).body.budgets.day.used.tokens).toBe(0);
  const late = await alice.delegate("scout");
  expect(late.body.details.resets_at).toBe("2030-07-01T00:00:00.000Z");
  expect(Number(late.headers.get("retry-after"))).toBeLessThanOrEqual(60);
  clock.offset_ms += 60_000;
  expect((await alice.delegate("scout")).status).toBe(202);
  // Also what the operator redrives counts for its delegator.
  const again = (await api.call("POST", `/v1/delegations/${first.id}/redrive`)).body;
  const leases = (await workers.scout.lease("scout", { max: 10 })).body.leases;
  const lease = leases.find((one: { delegation: { id: string } }) => one.delegation.id === again.id);
  await workers.scout.reply(lease.lease_id, { usage: { input_tokens: 3 } });
  expect((await alice.call("GET", "/v1/status")).body.budgets.month.used.tokens).toBe(3);
});

test("a report counts once, wherever its gateway dies, and whichever gateway gets it again", async () => {
  const { gateway, workers, started, shown, another } = await setup({ month: { tokens: 1_000 } });
  const second = await another();
  const scout = await actingAs(second.url, "agent:scout");
  const { writer } = gateway.broker;
  const move = writer.move.bind(writer);
  let total = 0;
  for (const isWritten of [false, true]) {
    const { lease } = await started("scout");
    for (const tokens of [10, 25]) {
      const report = { usage: { input_tokens: tokens } };
      vi.spyOn(writer, "move").mockImplementationOnce(async (...args) => {
        if (isWritten) await move(...args);
        throw new Error("the gateway is dead");
      });
      expect((await workers.scout.heartbeat(lease, report)).status).toBe(500);
      expect((await shown()).month.used.tokens).toBe(total + (isWritten ? tokens : tokens === 25 ? 10 : 0));
      for (let n = 0; n < 2; n += 1) expect((await scout.heartbeat(lease, report)).status).toBe(200);
      expect((await shown()).month.used.tokens).toBe(total + tokens);
    }
    total += 25;
  }
});
