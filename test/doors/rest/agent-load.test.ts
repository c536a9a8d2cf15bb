/** What starts workers reads how many are wanted. */
import { expect, test } from "vitest";
import { Admin, agentLoad } from "../../../src/index.ts";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";

test("wanted is what waits and is ready, within max_working, and 0 while the agent is paused or pushed to", async () => {
  const { url } = await startBroker();
  const api = client(url);
  const to = { url, token: OPERATOR };
  const admin = new Admin(to);
  await api.agent("scout", { limits: { max_working: 3 } });
  const idle = { queued: 0, leased: 0, wanted: 0, max_working: 3, paused: false, oldest_waiting_at: null };
  expect(await agentLoad("scout", to)).toEqual(idle);
  for (let n = 0; n < 5; n += 1) await api.delegate("scout");
  await api.delegate("scout", { delay_seconds: 600 });
  const oldest_waiting_at = expect.any(String);
  expect(await agentLoad("scout", to)).toEqual({ ...idle, queued: 5, wanted: 3, oldest_waiting_at });
  await api.lease("scout", { max: 2 });
  expect(await agentLoad("scout", to)).toMatchObject({ queued: 3, leased: 2, wanted: 1 });
  await api.lease("scout");
  await admin.putAgent("scout", { limits: { max_working: 2 } });
  expect(await agentLoad("scout", to)).toMatchObject({ queued: 2, leased: 3, wanted: 0, max_working: 2 });
  await admin.putAgent("scout", { limits: { max_working: null } });
  expect(await agentLoad("scout", to)).toMatchObject({ wanted: 2, max_working: null });
  await api.call("POST", "/v1/agents/scout/pause");
  expect(await agentLoad("scout", to)).toMatchObject({ queued: 2, wanted: 0, paused: true });
  await expect(agentLoad("nobody", to)).rejects.toMatchObject({ code: "agent_unknown" });
  const { token } = await as(url, "caller:mallory");
  await expect(agentLoad("scout", { url, token })).rejects.toMatchObject({ code: "forbidden" });
});

test("of a conversation that is served in order, one worker is wanted", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("chat", { serial_by: "context" });
  for (const context_id of ["a", "a", "a", "b"]) await api.delegate("chat", { context_id });
  expect(await agentLoad("chat", { url, token: OPERATOR })).toMatchObject({ queued: 4, wanted: 2 });
  await api.lease("chat");
  expect(await agentLoad("chat", { url, token: OPERATOR })).toMatchObject({
    queued: 3,
    leased: 1,
    wanted: 1,
  });
});
