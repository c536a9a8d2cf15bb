/** To A2A, work that waits for its children is working: in the task, in lists and in streams. */
import { expect, test } from "vitest";
import { as } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import {
  asTask,
  BINDINGS,
  collectFromStart,
  leaseOf,
  sdkClient,
  sdkMessage,
  sendParams,
  startA2aBroker,
  stateOf,
} from "./support.ts";

test.each(BINDINGS)("%s: a task that waits for its children is working until it ends", async (binding) => {
  const { url, caller, agent } = await startA2aBroker();
  const smith = await as(url, "agent:smith");
  await smith.agent("smith");
  const client = await sdkClient(url, "scout", caller.token, binding);
  const stream = await collectFromStart(client.sendMessageStream(sendParams(sdkMessage("build a cart"))));
  const { lease, id } = await leaseOf(agent);
  await agent.heartbeat(lease, { progress: { message: "delegating" } });
  await until(() => stream.lines().includes("WORKING delegating"));
  const child = (await agent.delegate("smith", { parent_id: id })).body.id;
  expect((await agent.await(lease, [child])).body.awaits.left).toBe(1);

  const task = await client.getTask({ tenant: "", id, historyLength: 0 });
  expect(stateOf(task)).toBe("WORKING");
  const asked = {
    ...{ tenant: "", contextId: "", pageSize: 10, pageToken: "" },
    ...{ historyLength: undefined, statusTimestampAfter: undefined, includeArtifacts: undefined },
  };
  // Version 0.3 cannot list.
  if (!binding.endsWith("0.3")) {
    const working = await client.listTasks({ ...asked, status: 2 });
    expect(working.tasks.map((one) => [one.id, stateOf(one)])).toEqual([[id, "WORKING"]]);
    expect((await client.listTasks({ ...asked, status: 1 })).tasks).toEqual([]);
  }
  const attached = await collectFromStart(client.resubscribeTask({ tenant: "", id }));
  expect(attached.lines()).toEqual(["task WORKING"]);
  expect([stream.isOpen(), attached.isOpen()]).toEqual([true, true]);

  await smith.reply((await leaseOf(smith, "smith")).lease);
  const again = await until(async () => (await agent.lease("scout")).body.leases[0]);
  await agent.reply(again.lease_id, { text: "a cart" });
  await Promise.all([stream.ended, attached.ended]);
  expect(stream.lines()).toEqual([
    // Leased, progress, waiting for the child; queued again, leased, replied.
    ...["task SUBMITTED", "WORKING", "WORKING delegating", "WORKING"],
    ...["SUBMITTED", "WORKING", "artifact reply a cart", "COMPLETED a cart"],
  ]);
  expect(attached.lines().slice(-1)).toEqual(["COMPLETED a cart"]);
  expect(stateOf(asTask(await client.getTask({ tenant: "", id, historyLength: 0 })))).toBe("COMPLETED");
});
