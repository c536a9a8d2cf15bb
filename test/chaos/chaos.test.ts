/** A short chaos run: some seconds of every fault, then all checks. `npm run prove -- chaos` runs for longer. */
import { expect, it } from "vitest";
import { DEFAULTS } from "./options.ts";
import { runChaos } from "./run.ts";

it("all rules hold after a few seconds of every fault", { timeout: 150_000 }, async () => {
  const options = {
    ...{ ...DEFAULTS, seed: 7, minutes: 0.13, gateways: 2, delegators: 1, agents: 1, subscribers: 1 },
    ...{ rate: 8, every: 1, leaseSeconds: 2 },
  };
  const { verdict, summary, kept } = await runChaos(options, { say: () => undefined });
  expect({ violations: verdict.violations, kept }).toEqual({ violations: [], kept: null });
  expect(summary.delegations).toBeGreaterThan(0);
  expect(summary.faults).not.toEqual({});
});
