/** The broker's question for a larger budget, and budgets that are used up, in the CLI against a real gateway. */
import { expect, test } from "vitest";
import { as } from "../../support/broker.ts";
import { setup } from "./cli.ts";

async function asked(
  budget: object = { cost: 2, currency: "USD", tokens: 900 },
  usage: object = { cost: 2.5, currency: "USD" },
) {
  const broker = await setup();
  const { api, clock, gateway } = broker;
  await api.agent("scout");
  const body = { budget, on_budget: "ask" };
  const { id } = (await api.delegate("scout", body)).body;
  const [{ lease_id }] = (await api.lease("scout", { lease_seconds: 3_600 })).body.leases;
  await api.heartbeat(lease_id, { usage });
  await gateway.sweep.tick();
  clock.offset_ms += 31_000;
  await gateway.sweep.tick();
  expect((await api.get(id)).body.state).toBe("input_required");
  return { ...broker, id };
}

test("an answer that does not fit says which commands do, and in which units", async () => {
  const { run, id } = await asked();
  const text = await run(["answer", id, "approve"]);
  expect(text.code).toBe(64);
  expect(text.stderr).toContain(`'errand approve ${id}'`);
  expect(text.stderr).toContain("Used: 0 of 900 tokens, 2.5 of 2 USD, 1 attempt; a cost is in USD");
  const little = await run(["approve", id, "--data", '{"cost": 2.1}']);
  expect([little.code, little.stderr]).toEqual([64, expect.stringContaining("a cost is in USD")]);
});

test("the units are those of amounts that the budget has", async () => {
  const { run, id } = await asked({ tokens: 900 }, { input_tokens: 1_000 });
  const { stderr } = await run(["answer", id, "approve"]);
  expect(stderr).toContain("Used: 1,000 of 900 tokens, 1 attempt.\n");
});

test("an approval says what the budget is now", async () => {
  const { run, id } = await asked();
  const { stdout, stderr } = await run(["approve", id, "--data", '{"cost": 5}']);
  expect(stdout).toBe(`approved ${id}\n`);
  expect(stderr).toContain("used of the new budget: 0 of 900 tokens, 2.5 of 5 USD, 1 attempt");
});

test("a budget that is used up is refused with its currency and its period", async () => {
  const { run, api, url } = await setup();
  await api.agent("scout", { budgets: { day: { cost: 1, currency: "EUR" } } });
  const scout = await as(url, "agent:scout");
  await api.delegate("scout");
  const [{ lease_id }] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  await scout.heartbeat(lease_id, { usage: { cost: 1.25, currency: "EUR" } });
  const { stderr } = await run(["delegate", "scout", "more"]);
  expect(stderr).toContain("Agent 'scout' has used 1.25 of 1 EUR for this day (UTC).");
});

test("a command of errand work without a token learns where to get one", async () => {
  const { run } = await setup();
  const env = { ERRAND_LEASE_ID: "lse_1", ERRAND_TOKEN: "" };
  const { code, stderr } = await run(["list"], { env });
  expect([code, stderr]).toEqual([77, expect.stringContaining("ERRAND_COMMAND_TOKEN")]);
});
