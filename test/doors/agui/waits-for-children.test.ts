/** A run goes on while its delegation waits for children. */
import { expect, test } from "vitest";
import { as } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { setup, started } from "./support.ts";

test("a run shows that its delegation waits for children, and ends with its reply", async () => {
  const { url, scout, lease, client } = await setup();
  const smith = await as(url, "agent:smith");
  await smith.agent("smith");
  const ui = client("thread-1");
  ui.say("build a cart");
  const { run, lease_id, delegation } = await started(ui, lease);
  const child = (await scout.delegate("smith", { parent_id: delegation.id })).body.id;
  expect((await scout.await(lease_id, [child])).body.awaits.left).toBe(1);
  await until(() => ui.errand().state === "awaiting_children", { what: "the state of the run" });
  expect(ui.seen("RUN_FINISHED")).toBe(false);

  await smith.reply((await smith.lease("smith", { wait_seconds: 5 })).body.leases[0].lease_id);
  await scout.reply((await lease()).lease_id, { text: "a cart" });
  const { last, error, types } = await run;
  expect(error).toBeUndefined();
  expect(last.outcome).toEqual({ type: "success" });
  expect(types.filter((type) => type === "RUN_FINISHED")).toHaveLength(1);
  expect(ui.errand()).toMatchObject({ state: "completed" });
  expect(ui.messages().at(-1)).toMatchObject({ role: "assistant", content: "a cart" });
});
