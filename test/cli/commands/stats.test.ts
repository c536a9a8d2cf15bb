/** `errand stats` against a real gateway. */
import { expect, test } from "vitest";
import { statsSchema } from "../../../src/schema/stats.ts";
import { lines, setup } from "../broker/cli.ts";

test("shows what happened in the last hour, of all agents and of one", async () => {
  const { run, api } = await setup();
  await api.agent("scout", { limits: { max_attempts: 1 } });
  await api.agent("coder");
  for (let n = 0; n < 2; n += 1) await api.delegate("scout");
  const { lease_id } = (await api.lease("scout")).body.leases[0];
  await api.reply(lease_id, { state: "failed", error: { code: "disk_full", message: "no" } });
  const { code, stdout } = await run(["stats"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^LAST HOUR +all agents\nsent +2\nleased +1\n/);
  expect(stdout).toMatch(/^failed +1$/m);
  expect(stdout).toMatch(/^ {2}disk_full +1$/m);
  expect(stdout).toMatch(/^time to worker +about half within .*, about 95 % within /m);
  expect(stdout).toMatch(/^time to completion +-$/m);
  // Without waiting for the next sample.
  expect(stdout).toMatch(/^highest waiting +1$/m);
  const json = await run(["stats", "coder", "--period", "day", "--json"]);
  expect(lines(statsSchema, json.stdout)).toMatchObject([{ target: "coder", totals: { sent: 0 } }]);
  expect((await run(["stats", "nobody"])).code).toBe(66);
  const hers = await run(["stats", "--delegator", "caller:alice"]);
  expect(hers.stdout).toMatch(/^LAST HOUR +caller:alice\n/);
  expect(hers.stdout).not.toContain("highest waiting");
});

test("--by-agent shows how the work of each agent ended", async () => {
  const { run, api } = await setup();
  for (const name of ["scout", "coder"]) await api.agent(name, { limits: { max_attempts: 1 } });
  await api.delegate("scout");
  const { lease_id } = (await api.lease("scout")).body.leases[0];
  await api.reply(lease_id, { usage: { cost: 0.5, currency: "USD" } });
  const { code, stdout, stderr } = await run(["stats", "--by-agent"]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(
    /^AGENT +COMPLETED +FAILED +REJECTED +CANCELED +COST\ncoder +0 +0 +0 +0 +-\nscout +1 +0 +0 +0 +0.5 USD\n$/,
  );
  const json = JSON.parse((await run(["stats", "--by-agent", "--json"])).stdout);
  expect(json.agents).toMatchObject([{ agent: "coder" }, { agent: "scout", completed: 1 }]);
  expect((await run(["stats", "scout", "--by-agent"])).code).toBe(64);
});
