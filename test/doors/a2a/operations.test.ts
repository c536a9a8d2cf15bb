/** The official SDK's client calls every operation on every binding; the agent uses only the agent protocol. */
import { describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import {
  asTask,
  BINDINGS,
  type Binding,
  collect,
  collectFromStart,
  leaseOf,
  sdkClient,
  sdkMessage,
  sendParams,
  startA2aBroker,
  stateOf,
  textOf,
} from "./support.ts";

async function setup(binding: Binding) {
  const broker = await startA2aBroker();
  const client = await sdkClient(broker.url, "scout", broker.caller.token, binding);
  const begin = async (text = "work") =>
    asTask(await client.sendMessage(sendParams(sdkMessage(text), { returnImmediately: true })));
  return { ...broker, client, begin };
}

describe.each(BINDINGS)("%s", (binding) => {
  test("uses the expected version", async () => {
    const { client } = await setup(binding);
    expect(client.protocolVersion).toBe(binding.endsWith("0.3") ? "0.3" : "1.0");
  });

  test("SendMessage waits for the end, and the agent gets the whole message", async () => {
    const { client, agent } = await setup(binding);
    const sent = client.sendMessage(
      sendParams(
        sdkMessage("look at this", {
          messageId: "mine",
          metadata: { tone: "dry" },
          parts: [
            { content: { $case: "text", value: "look" }, metadata: undefined, filename: "", mediaType: "" },
            {
              content: { $case: "raw", value: Buffer.from([0, 255, 1]) },
              metadata: undefined,
              filename: "a.bin",
              mediaType: "application/octet-stream",
            },
            {
              content: { $case: "data", value: { n: [1] } },
              metadata: undefined,
              filename: "",
              mediaType: "",
            },
          ],
        }),
      ),
    );
    const { lease, body } = await leaseOf(agent);
    const got = body.request.params.message;
    expect(got).toMatchObject({ messageId: "mine", role: "ROLE_USER", metadata: { tone: "dry" } });
    expect(got.parts.map(({ text, raw, data }: Record<string, unknown>) => text ?? raw ?? data)).toEqual([
      "look",
      "AP8B",
      { n: [1] },
    ]);
    expect("taskId" in got).toBe(false);
    await agent.reply(lease, { text: "seen", artifacts: [{ artifactId: "a", parts: [{ text: "whole" }] }] });
    const task = asTask(await sent);
    expect([stateOf(task), textOf(task.status?.message?.parts)]).toEqual(["COMPLETED", "seen"]);
    expect(task.artifacts.map(({ parts }) => textOf(parts))).toEqual(["whole"]);
    expect(task.history.map(({ messageId }) => messageId)).toEqual(["mine"]);
  });

  test("SendMessage with returnImmediately, then GetTask", async () => {
    const { client, agent, begin } = await setup(binding);
    const begun = await begin();
    expect(stateOf(begun)).toBe("SUBMITTED");
    const { lease, id } = await leaseOf(agent);
    expect(begun.id).toBe(id);
    expect(stateOf(await client.getTask({ tenant: "", id }))).toBe("WORKING");
    await agent.reply(lease, { text: "done", usage: { input_tokens: 5, cost: 0.5, currency: "USD" } });
    const task = await client.getTask({ tenant: "", id, historyLength: 0 });
    expect([stateOf(task), task.history]).toEqual(["COMPLETED", []]);
    const usage = { inputTokens: 5, cost: 0.5, currency: "USD", complete: true };
    expect(task.metadata?.errand).toMatchObject({ usage });
  });

  test("SendStreamingMessage streams every update, and SubscribeToTask the later ones", async () => {
    const { client, agent } = await setup(binding);
    const stream = await collectFromStart(client.sendMessageStream(sendParams(sdkMessage("stream"))));
    const { lease, id } = await leaseOf(agent);
    await agent.heartbeat(lease, { progress: { message: "half" } });
    await until(() => stream.lines().includes("WORKING half"));
    const second = collect(client.resubscribeTask({ tenant: "", id }));
    await until(() => second.events.length > 0);
    await agent.call("POST", `/v1/leases/${lease}/artifacts`, {
      artifact: { artifactId: "out", parts: [{ text: "one" }] },
    });
    await agent.call("POST", `/v1/leases/${lease}/artifacts`, {
      artifact: { artifactId: "out", parts: [{ text: "two" }] },
      append: true,
      last_chunk: true,
    });
    await agent.reply(lease, { text: "done" });
    await Promise.all([stream.ended, second.ended]);
    const end = ["artifact out one", "artifact out two", "COMPLETED done"];
    expect(stream.lines()).toEqual(["task SUBMITTED", "WORKING", "WORKING half", ...end]);
    expect(second.lines()).toEqual(["task WORKING", ...end]);
    const appended = stream.events.flatMap(({ payload }) =>
      payload?.$case === "artifactUpdate" ? [payload.value.append] : [],
    );
    // The SDK's client of HTTP+JSON 0.3 loses the flag.
    expect(appended).toEqual([false, binding !== "HTTP+JSON of 0.3"]);
  });

  test("CancelTask", async () => {
    const { client, agent, begin } = await setup(binding);
    const { id } = await begin();
    const { lease } = await leaseOf(agent);
    expect(stateOf(await client.cancelTask({ tenant: "", id, metadata: {} }))).toBe("CANCELED");
    const { body } = await agent.heartbeat(lease);
    expect([body.code, body.details.reason]).toEqual(["lease_lost", "canceled"]);
  });

  test("a question ends the stream; a message with the task's id is the answer", async () => {
    const { client, agent } = await setup(binding);
    const stream = collect(client.sendMessageStream(sendParams(sdkMessage("deploy"))));
    const { lease, id } = await leaseOf(agent);
    await agent.interrupt(lease, { text: "to production?", request_id: "where" });
    await stream.ended;
    expect(stream.lines().at(-1)).toBe("INPUT_REQUIRED to production?");
    const answered = asTask(
      await client.sendMessage(sendParams(sdkMessage("yes", { taskId: id }), { returnImmediately: true })),
    );
    expect([answered.id, stateOf(answered)]).toEqual([id, "SUBMITTED"]);
    const next = await leaseOf(agent);
    expect(next.body.request.params.message.parts).toEqual([{ text: "yes" }]);
    const following = client.sendMessage(sendParams(sdkMessage("quickly", { taskId: id })));
    await until(async () => (await agent.heartbeat(next.lease)).body.messages?.length === 1);
    await agent.reply(next.lease, { text: "deployed" });
    expect(stateOf(asTask(await following))).toBe("COMPLETED");
  });

  test("the extended card shows the caller who polls", async () => {
    const { client, caller } = await setup(binding);
    await caller.get("none");
    const card = await client.getAgentCard();
    expect(card.name).toBe("scout");
    const [extension] = card.capabilities?.extensions ?? [];
    expect(extension?.params).toMatchObject({ presence: { state: "offline" }, counts: { waiting: 0 } });
  });
});

describe.each(["JSON-RPC", "HTTP+JSON"] as const)("%s", (binding) => {
  test("ListTasks", async () => {
    const { client, agent, begin } = await setup(binding);
    const first = await begin("one");
    const second = await begin("two");
    const { lease } = await leaseOf(agent);
    await agent.reply(lease, { text: "done" });
    const asked = {
      tenant: "",
      contextId: "",
      status: 0,
      pageToken: "",
      statusTimestampAfter: undefined,
      pageSize: 1,
    };
    const page = await client.listTasks(asked);
    expect([page.tasks.map(({ id }) => id), page.totalSize, page.pageSize]).toEqual([[first.id], 2, 1]);
    const rest = await client.listTasks({ ...asked, pageToken: page.nextPageToken });
    expect([rest.tasks.map(({ id }) => id), rest.nextPageToken]).toEqual([[second.id], ""]);
    const done = await client.listTasks({ ...asked, pageSize: 10, status: 3, includeArtifacts: true });
    expect(done.tasks.map(({ artifacts }) => artifacts.length)).toEqual([1]);
  });
});
