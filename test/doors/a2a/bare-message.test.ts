/** An agent's bare Message: who gets it as a Message, and who sees the task as always. */
import { expect, test } from "vitest";
import { setFields } from "../../support/record.ts";
import {
  asTask,
  BINDINGS,
  collectFromStart,
  jsonMessage,
  leaseOf,
  sdkClient,
  sdkMessage,
  sendParams,
  startA2aBroker,
  stateOf,
  textOf,
} from "./support.ts";

const HI = { messageId: "hi-1", role: "ROLE_AGENT", parts: [{ text: "hi" }], metadata: { tone: "dry" } };
/** The same in A2A 0.3, from an agent that names the context of its own. */
const HI_03 = { kind: "message", messageId: "hi-1", role: "agent", parts: [{ kind: "text", text: "hi" }] };

async function setup() {
  const broker = await startA2aBroker({ callbackAllow: ["127.0.0.1"] });
  await broker.agent.agent("scout", { backoff: { initial_ms: 0, max_ms: 0 } });
  const { agent, raw } = broker;
  /** The result of a blocking send, which the agent answers by `work`. */
  const send = async (
    work: (lease: string, id: string) => Promise<unknown>,
    params: object = {},
    headers: Record<string, string> = {},
  ) => {
    const sent = raw.rpc("SendMessage", { message: jsonMessage("hello"), ...params }, headers);
    const { lease, id } = await leaseOf(agent);
    await work(lease, id);
    const { body } = await sent;
    return { id, result: body.result };
  };
  return { ...broker, send };
}

test("over each binding a blocking send gets the Message, and GetTask the task", async () => {
  const { url, agent, caller, replies } = await setup();
  const cases = BINDINGS.flatMap((binding) => [HI, HI_03].map((message) => ({ binding, message })));
  for (const { binding, message } of cases) {
    const client = await sdkClient(url, "scout", caller.token, binding);
    const sent = client.sendMessage(sendParams(sdkMessage("hello", { contextId: "talk-1" })));
    const { lease, id } = await leaseOf(agent);
    expect((await replies(lease, "kind" in message ? message : { message })).status).toBe(200);
    const answer = await sent;
    if (!("messageId" in answer)) throw new Error("a task where a message was expected");
    expect(answer).toMatchObject({ messageId: "hi-1", role: 2, taskId: id, contextId: "talk-1" });
    expect(textOf(answer.parts)).toBe("hi");
    const task = asTask(await client.getTask({ tenant: "", id }));
    expect([stateOf(task), textOf(task.status?.message?.parts)]).toEqual(["COMPLETED", "hi"]);
    expect(task.artifacts.map(({ artifactId }) => artifactId)).toEqual(["reply"]);
  }
});

test("the whole Message is passed on, without the lease; a repeated send gets it from the record", async () => {
  const { send, replies, raw, redis, gateway } = await setup();
  const params = { message: jsonMessage("hello") };
  const headers = { "idempotency-key": "one" };
  const metadata = { tone: "dry" };
  const { id, result } = await send(
    (lease) => replies(lease, { message: { ...HI, metadata: { ...metadata, lease_id: lease } } }),
    params,
    headers,
  );
  const message = { ...HI, metadata, taskId: id, contextId: expect.any(String) };
  expect(result).toEqual({ message });
  const again = async () => (await raw.rpc("SendMessage", params, headers)).body.result;
  expect(await again()).toEqual(result);
  // As a version stored it that did not know the form.
  await setFields(redis, gateway.broker.shards.ofId(id)?.delegation(id) ?? "", { a2a_form: "" });
  expect(await again()).toMatchObject({ task: { id, status: { state: "TASK_STATE_COMPLETED" } } });
});

type Setup = Awaited<ReturnType<typeof setup>>;
const webhook = { configuration: { taskPushNotificationConfig: { url: "http://127.0.0.1:9/" } } };

/** What the agent does, and the params of the send, for which the answer is a Task. */
const TASKS: Record<
  string,
  [work: (broker: Setup, lease: string, id: string) => Promise<unknown>, more?: object]
> = {
  "a lease reply with a text": [({ agent }, lease) => agent.reply(lease, { text: "hi" })],
  "a lease reply with a Message": [
    ({ agent }, lease) => agent.reply(lease, { text: undefined, message: HI }),
  ],
  "a completed Task": [
    ({ replies }, lease) =>
      replies(lease, { task: { id: "t", status: { state: "TASK_STATE_COMPLETED", message: HI } } }),
  ],
  "a state before it, without a message": [
    async ({ replies }, lease) => {
      await replies(lease, { task: { id: "t", status: { state: "TASK_STATE_WORKING" } } });
      return replies(lease, { message: HI });
    },
  ],
  "progress before it": [
    async ({ agent, replies }, lease) => {
      await agent.heartbeat(lease, { progress: { message: "half" } });
      return replies(lease, { message: HI });
    },
  ],
  "an artifact before it": [
    async ({ agent, replies }, lease) => {
      const artifact = { artifactId: "a", parts: [{ text: "out" }] };
      await agent.call("POST", `/v1/leases/${lease}/artifacts`, { artifact });
      return replies(lease, { message: HI });
    },
  ],
  "a question before it": [
    async ({ agent, caller, replies }, lease, id) => {
      const { body } = await agent.interrupt(lease, { text: "Which?" });
      await caller.answer(id, body.interrupt_id, { text: "that" });
      const { lease: next } = await leaseOf(agent);
      return replies(next, { message: HI });
    },
  ],
  "an approval in advance before it": [
    async ({ agent, replies }, lease) => {
      await agent.interrupt(lease, { text: "Deploy?", action: { name: "deploy" } });
      return replies((await leaseOf(agent)).lease, { message: HI });
    },
    { metadata: { auto_approve: true } },
  ],
  "progress in an attempt before": [
    async ({ agent, replies }, lease) => {
      await agent.heartbeat(lease, { progress: { message: "half" } });
      await agent.release(lease);
      return replies((await leaseOf(agent)).lease, { message: HI });
    },
  ],
  "a failure before it": [
    async ({ agent, replies }, lease) => {
      const error = { code: "flaky", message: "again", retryable: true };
      const artifacts = [{ artifactId: "a", parts: [{ text: "out" }] }];
      await agent.reply(lease, { state: "failed", text: undefined, error, artifacts });
      return replies((await leaseOf(agent)).lease, { message: HI });
    },
  ],
  "no part": [({ replies }, lease) => replies(lease, { message: { ...HI, parts: [] } })],
  "a push notification config": [({ replies }, lease) => replies(lease, { message: HI }), webhook],
  "a send that does not wait": [
    ({ replies }, lease) => replies(lease, { message: HI }),
    { configuration: { returnImmediately: true } },
  ],
};

test("everything else is answered with a Task, also when the send is repeated", async () => {
  const broker = await setup();
  for (const [what, [work, more]] of Object.entries(TASKS)) {
    const params = { message: jsonMessage("hello"), ...more };
    const headers = { "idempotency-key": what };
    const { id, result } = await broker.send((lease, id) => work(broker, lease, id), params, headers);
    expect(result.task?.id, what).toBe(id);
    const { body } = await broker.raw.rpc("SendMessage", params, headers);
    expect(body.result.task, what).toMatchObject({ id, status: { state: "TASK_STATE_COMPLETED" } });
  }
});

test("an attempt that showed nothing does not matter; the first answer holds", async () => {
  const { send, agent, replies } = await setup();
  const { id, result } = await send(async (lease) => {
    await agent.heartbeat(lease);
    await agent.release(lease);
    const { lease: next } = await leaseOf(agent);
    expect((await replies(lease, { message: { ...HI, messageId: "late" } })).body.code).toBe("lease_lost");
    expect((await replies(next, { message: HI })).body.outcome).toBe("matched");
    expect((await replies(next, { message: HI })).body.outcome).toBe("duplicate");
    expect((await replies(next, { message: { ...HI, messageId: "other" } })).body.code).toBe("lease_lost");
  });
  expect(result.message).toMatchObject({ messageId: "hi-1", taskId: id });
});

test("a send that got its unfinished Task gets the Message when it is repeated", async () => {
  const { raw, agent, replies } = await setup();
  const message = jsonMessage("hello");
  const send = async (returnImmediately: boolean) => {
    const params = { message, configuration: { returnImmediately } };
    return (await raw.rpc("SendMessage", params, { "idempotency-key": "k" })).body.result;
  };
  const { task } = await send(true);
  await replies((await leaseOf(agent)).lease, { message: HI });
  expect((await send(false)).message).toMatchObject({ messageId: "hi-1", taskId: task.id });
});

test("a follow-up is answered with its Task", async () => {
  const { agent, raw, begin, replies } = await setup();
  const { id } = await begin();
  const { lease } = await leaseOf(agent);
  const sent = raw.rpc("SendMessage", { message: jsonMessage("and this", { taskId: id }) });
  const { body: heard } = await agent.heartbeat(lease, { wait_seconds: 5 });
  expect(heard.messages).toHaveLength(1);
  await replies(lease, { message: HI });
  expect((await sent).body.result.task.status.state).toBe("TASK_STATE_COMPLETED");
});

test("a stream, which starts with the Task, ends with it", async () => {
  const { url, agent, caller, replies } = await setup();
  const client = await sdkClient(url, "scout", caller.token);
  const read = await collectFromStart(client.sendMessageStream(sendParams(sdkMessage("hello"))));
  const { lease } = await leaseOf(agent);
  await replies(lease, { message: HI });
  await read.ended;
  expect(read.lines()).toEqual(["task SUBMITTED", "WORKING", "artifact reply hi", "COMPLETED hi"]);
});
