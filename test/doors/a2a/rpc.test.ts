/** The basic flow: JSON-RPC 1.0 with an agent that polls. */
import { expect, test, vi } from "vitest";
import { until } from "../../support/until.ts";
import {
  asTask,
  collectFromStart,
  leaseOf,
  sdkClient,
  sdkMessage,
  sendParams,
  startA2aBroker,
  stateOf,
  textOf,
} from "./support.ts";

test("a blocking send is answered with the agent's reply", async () => {
  const { url, agent, caller } = await startA2aBroker();
  const client = await sdkClient(url, "scout", caller.token);
  const sent = client.sendMessage(sendParams(sdkMessage("how many words")));
  const { lease, body } = await leaseOf(agent);
  expect(body.request.params.message.parts).toEqual([{ text: "how many words" }]);
  await agent.reply(lease, { text: "three" });
  const task = asTask(await sent);
  expect([stateOf(task), textOf(task.status?.message?.parts)]).toEqual(["COMPLETED", "three"]);
  expect(task.artifacts.map(({ artifactId, parts }) => [artifactId, textOf(parts)])).toEqual([
    ["reply", "three"],
  ]);
});

test("when a poll already waits, the stream begins with the task as WORKING", async () => {
  const { url, agent, caller, gateway } = await startA2aBroker();
  const client = await sdkClient(url, "scout", caller.token);
  const { writer, handoff } = gateway.broker;
  const take = vi.spyOn(writer, "take");
  const leased = leaseOf(agent);
  // The poll found nothing and is parked.
  await until(() => take.mock.settledResults[0]?.type === "fulfilled" && handoff.polls.count("scout") === 1);
  const stream = await collectFromStart(client.sendMessageStream(sendParams(sdkMessage("count"))));
  await agent.reply((await leased).lease, { text: "done" });
  await stream.ended;
  expect(stream.lines()).toEqual(["task WORKING", "artifact reply done", "COMPLETED done"]);
});

test("a stream begins with the task and ends with its end", async () => {
  const { url, agent, caller } = await startA2aBroker();
  const client = await sdkClient(url, "scout", caller.token);
  const stream = await collectFromStart(client.sendMessageStream(sendParams(sdkMessage("count"))));
  const { lease } = await leaseOf(agent);
  await agent.heartbeat(lease, { progress: { message: "at it" } });
  await agent.reply(lease, { text: "done" });
  await stream.ended;
  expect(stream.lines()).toEqual([
    "task SUBMITTED",
    "WORKING",
    "WORKING at it",
    "artifact reply done",
    "COMPLETED done",
  ]);
});
