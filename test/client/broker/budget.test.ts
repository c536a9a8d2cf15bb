/** A handler whose delegation has a budget, with a real broker. */
import { expect, onTestFinished, test } from "vitest";
import { Agent, type AgentEvent, Delegator, LeaseLostError, OverBudgetError } from "../../../src/index.ts";
import { as, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

test("the handler learns once that too much was used, and stops when its time is over", async () => {
  const { url, clock, gateway } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const delegator = new Delegator({ url, token: alice.token });
  const events: AgentEvent[] = [];
  const seen: unknown[] = [];
  let stopped: unknown;
  const agent = new Agent(
    { url, token: scout.token, agent: "scout", onEvent: (event) => events.push(event) },
    async (work) => {
      seen.push(work.budget);
      work.overBudget.addEventListener("abort", () => seen.push(work.overBudget.reason));
      work.usage({ input_tokens: 60 });
      work.usage({ input_tokens: 60, output_tokens: 41 });
      await new Promise((resolve) => work.signal.addEventListener("abort", resolve));
      stopped = work.signal.reason;
      return "too late";
    },
  );
  agent.run().catch(() => undefined);
  onTestFinished(() => agent.stop(0));
  const { id } = await delegator.delegate({ target: "scout", task: "count", budget: { tokens: 100 } });
  const over = () => events.filter(({ type }) => type === "over_budget");
  await until(() => over().length > 0);
  await gateway.sweep.tick();
  clock.offset_ms = 31_000;
  await gateway.sweep.tick();
  await until(() => stopped !== undefined);
  expect(stopped).toBeInstanceOf(LeaseLostError);
  expect(stopped).toMatchObject({ reason: "over_budget" });
  expect(over()).toEqual([
    {
      type: "over_budget",
      delegationId: id,
      budget: {
        limit: { tokens: 100 },
        used: { tokens: 101, attempts: 1 },
        exceeded: true,
        stops_at: expect.any(String),
      },
    },
  ]);
  expect(seen).toEqual([
    { limit: { tokens: 100 }, used: { tokens: 0, attempts: 1 } },
    expect.any(OverBudgetError),
  ]);
  const failed = await delegator.get(id);
  expect(failed.error?.code).toBe("budget_exceeded");
});
