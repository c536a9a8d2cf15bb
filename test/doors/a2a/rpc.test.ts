/** The first look: JSON-RPC of 1.0 against an agent that polls. */
import { expect, test } from "vitest";
import { a2aDesk, asTask, leaseOf, reading, say, sdkClient, sending, stateOf, textOf } from "./support.ts";

test("a blocking send is answered with the agent's reply", async () => {
  const { url, agent, caller } = await a2aDesk();
  const client = await sdkClient(url, "scout", caller.token);
  const sent = client.sendMessage(sending(say("how many words")));
  const { lease, body } = await leaseOf(agent);
  expect(body.request.params.message.parts).toEqual([{ text: "how many words" }]);
  await agent.reply(lease, { text: "three" });
  const task = asTask(await sent);
  expect([stateOf(task), textOf(task.status?.message?.parts)]).toEqual(["COMPLETED", "three"]);
  expect(task.artifacts.map(({ artifactId, parts }) => [artifactId, textOf(parts)])).toEqual([
    ["reply", "three"],
  ]);
});

test("a stream begins with the task and ends with its end", async () => {
  const { url, agent, caller } = await a2aDesk();
  const client = await sdkClient(url, "scout", caller.token);
  const stream = reading(client.sendMessageStream(sending(say("count"))));
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
