/** `errand work` with a command that reports what it uses while it runs, under a budget. */
import { expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { setup } from "./cli.ts";

test("a command that uses more than its budget is stopped while it runs", async () => {
  const { api, run, clock, gateway } = await setup();
  await api.agent("scout");
  const { id } = (await api.delegate("scout", { budget: { tokens: 100 } })).body;
  // It ends by itself long after the test has failed.
  const script = `echo '{"input_tokens": 500}' > "$ERRAND_USAGE_FILE"; exec sleep 40`;
  const options = ["--lease", "1h", "--exit-when-idle"];
  const working = run(["work", "--agent", "scout", ...options, "--", "sh", "-c", script]);
  const budget = async () => (await api.get(id)).body.budget;
  await until(async () => (await budget()).exceeded, { timeoutMs: 20_000, what: "over budget" });
  await gateway.sweep.tick();
  expect((await api.get(id)).body).toMatchObject({
    state: "working",
    budget: { used: { tokens: 500 }, stops_at: expect.any(String) },
  });
  clock.offset_ms += 31_000;
  await gateway.sweep.tick();
  const { code, stderr } = await working;
  expect([code, stderr]).toEqual([0, expect.stringContaining("over budget: ")]);
  expect(stderr).toContain("the lease is lost");
  expect((await api.get(id)).body).toMatchObject({
    state: "failed",
    error: { code: "budget_exceeded" },
    usage: { total: { input_tokens: 500 } },
  });
});
