/** The operator's library with a real broker. */
import { expect, test } from "vitest";
import { Admin, Delegator } from "../../../src/index.ts";
import { as, OPERATOR, startBroker } from "../../support/broker.ts";

test("a paused agent gets no work until it is resumed", async () => {
  const { url } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const admin = new Admin({ url, token: OPERATOR });
  expect((await admin.pauseAgent("scout")).paused).toBe(true);
  const { id } = await new Delegator({ url, token: OPERATOR }).delegate({ target: "scout", task: "x" });
  expect((await scout.lease("scout", { wait_seconds: 0.2 })).body.leases).toEqual([]);
  expect((await admin.resumeAgent("scout")).paused).toBe(false);
  expect((await scout.lease("scout")).body.leases).toMatchObject([{ delegation: { id } }]);
});
