/** Several gateways, and clients that keep only a task's id: every gateway shows the same task. */
import type { Artifact, Part, StreamResponse, Task } from "@a2a-js/sdk";
import { describe, expect, test } from "vitest";
import { as, client, startBroker } from "../../support/broker.ts";
import { startGatewayProcess } from "../../support/gateway-process.ts";
import { until } from "../../support/until.ts";
import {
  asTask,
  BINDINGS,
  collect,
  jsonMessage,
  leaseOf,
  sdkClient,
  sdkMessage,
  sendParams,
  startA2aBroker,
  stateOf,
} from "./support.ts";

const PATIENT = { timeoutMs: 50_000 };

test("streams on two gateways get the same events in the same order", async () => {
  const { url, agent, caller, another } = await startA2aBroker();
  const other = await another();
  const [here, there] = await Promise.all([url, other.url].map((at) => sdkClient(at, "scout", caller.token)));
  if (!here || !there) throw new Error("two clients");
  const { id } = asTask(await here.sendMessage(sendParams(sdkMessage("work"), { returnImmediately: true })));
  const streams = [here, there].map((one) => collect(one.resubscribeTask({ tenant: "", id })));
  await until(() => streams.every(({ events }) => events.length === 1));
  const { lease } = await leaseOf(agent);
  const agentThere = client(other.url, agent.token);
  for (const [at, message] of ["a", "b", "c", "d"].entries()) {
    await (at % 2 === 0 ? agent : agentThere).heartbeat(lease, { progress: { message } });
  }
  await agentThere.call("POST", `/v1/leases/${lease}/artifacts`, {
    artifact: { artifactId: "x", parts: [{ text: "one" }] },
  });
  await agentThere.reply(lease, { text: "done" });
  await Promise.all(streams.map(({ ended }) => ended));
  expect(streams[0]?.lines()).toEqual([
    "task SUBMITTED",
    "WORKING",
    "WORKING a",
    "WORKING b",
    "WORKING c",
    "WORKING d",
    "artifact x one",
    "COMPLETED done",
  ]);
  expect(streams[0]?.events).toEqual(streams[1]?.events);
});

test("a cancel on one gateway reaches the lease on the other", async () => {
  const { url, agent, caller, another } = await startA2aBroker();
  const other = await another();
  const sdk = await sdkClient(url, "scout", caller.token);
  const { id } = asTask(await sdk.sendMessage(sendParams(sdkMessage("work"), { returnImmediately: true })));
  const agentThere = client(other.url, agent.token);
  const { lease } = await leaseOf(agentThere);
  const held = agentThere.heartbeat(lease, { wait_seconds: 20 });
  const blocked = (await sdkClient(other.url, "scout", caller.token)).sendMessage(
    sendParams(sdkMessage("and this", { taskId: id })),
  );
  expect((await held).body.messages).toHaveLength(1);
  const heldAgain = agentThere.heartbeat(lease, {
    wait_seconds: 20,
    seen: (await held).body.messages[0].messageId,
  });
  expect(stateOf(await sdk.cancelTask({ tenant: "", id, metadata: undefined }))).toBe("CANCELED");
  expect((await heldAgain).body.details.reason).toBe("canceled");
  expect(stateOf(asTask(await blocked))).toBe("CANCELED");
});

test("after a gateway is killed, the client resumes at another and misses nothing", async () => {
  const broker = await startBroker();
  const agent = await as(broker.url, "agent:scout");
  await agent.agent("scout");
  const { token } = await as(broker.url, "caller:alice");
  const doomed = await startGatewayProcess(broker.db);
  const sdk = await sdkClient(doomed.url, "scout", token);
  const stream = collect(sdk.sendMessageStream(sendParams(sdkMessage("work"))));
  const { lease, id } = await leaseOf(agent);
  await agent.call("POST", `/v1/leases/${lease}/artifacts`, {
    artifact: { artifactId: "x", parts: [{ text: "one" }] },
  });
  await until(() => stream.lines().includes("artifact x one"), PATIENT);
  await doomed.kill();
  await stream.ended.catch(() => undefined);
  await agent.call("POST", `/v1/leases/${lease}/artifacts`, {
    artifact: { artifactId: "x", parts: [{ text: "two" }] },
    append: true,
  });
  const resumed = await sdkClient(broker.url, "scout", token);
  const rest = collect(resumed.resubscribeTask({ tenant: "", id }));
  await until(() => rest.events.length === 1, PATIENT);
  await agent.call("POST", `/v1/leases/${lease}/artifacts`, {
    artifact: { artifactId: "x", parts: [{ text: "three" }] },
    append: true,
  });
  await agent.reply(lease, { text: "done" });
  await rest.ended;
  expect(rebuilt(rest.events).artifacts).toEqual({ x: ["one", "two", "three"] });
  expect(rest.lines()).toEqual(["task WORKING", "artifact x three", "COMPLETED done"]);
}, 120_000);

const textsOf = (parts: readonly Part[]): string[] =>
  parts.map(({ content }) => (content?.$case === "text" ? content.value : "?"));

/** The state of a client that knows only the stream's events. */
function rebuilt(events: readonly StreamResponse[]) {
  const artifacts: Record<string, string[]> = {};
  let status: Task["status"];
  let ours: Record<string, unknown> = {};
  const put = ({ artifactId, parts, metadata }: Artifact, append: boolean) => {
    artifacts[artifactId] = [...(append ? (artifacts[artifactId] ?? []) : []), ...textsOf(parts)];
    if (metadata?.dropped) delete artifacts[artifactId];
  };
  for (const { payload } of events) {
    if (payload?.$case === "task") {
      status = payload.value.status;
      ours = payload.value.metadata?.errand ?? {};
      for (const artifact of payload.value.artifacts) put(artifact, false);
    } else if (payload?.$case === "statusUpdate") {
      status = payload.value.status;
      ours = payload.value.metadata?.errand ?? {};
    } else if (payload?.$case === "artifactUpdate" && payload.value.artifact) {
      put(payload.value.artifact, payload.value.append);
    }
  }
  return { artifacts, state: stateOf({ status }), message: status?.message, interrupt: ours.interrupt };
}

describe.each(BINDINGS)("%s", (binding) => {
  test("a client without state gets the same questions and artifacts at every reconnect", async () => {
    const { url, agent, caller, another } = await startA2aBroker();
    const other = await another();
    const sdk = await sdkClient(url, "scout", caller.token, binding);
    const stream = collect(sdk.sendMessageStream(sendParams(sdkMessage("work"))));
    const { lease, id } = await leaseOf(agent);
    await agent.call("POST", `/v1/leases/${lease}/artifacts`, {
      artifact: { artifactId: "x", parts: [{ text: "one" }] },
    });
    await agent.interrupt(lease, {
      requests: [
        { request_id: "where", text: "where to?", options: ["here", "there"] },
        { request_id: "when", text: "when?" },
      ],
    });
    await stream.ended;
    const live = rebuilt(stream.events);
    expect(live).toMatchObject({
      state: "INPUT_REQUIRED",
      artifacts: { x: ["one"] },
      interrupt: {
        kind: "input",
        requests: [{ requestId: "where", options: ["here", "there"] }, { requestId: "when" }],
      },
    });
    expect(live.message?.parts.map(({ metadata }) => metadata?.requestId)).toEqual(
      binding === "HTTP+JSON of 0.3" ? [undefined, undefined] : ["where", "when"],
    );
    for (const at of [url, other.url, url]) {
      const again = await sdkClient(at, "scout", caller.token, binding);
      const snapshot = collect(again.resubscribeTask({ tenant: "", id }));
      await until(() => snapshot.events.length === 1);
      expect(rebuilt(snapshot.events)).toEqual(live);
    }
    const got = await sdk.getTask({ tenant: "", id });
    expect(got.metadata?.errand?.interrupt).toEqual(live.interrupt);
  });
});

test("the parts of one message answer several requests by their requestId", async () => {
  const { agent, begin, raw } = await startA2aBroker();
  const { rpc } = raw;
  const { id } = await begin();
  const { lease } = await leaseOf(agent);
  await agent.interrupt(lease, {
    requests: [
      { request_id: "deploy", text: "deploy?" },
      { request_id: "when", text: "when?" },
    ],
  });
  const { status } = (await rpc("GetTask", { id })).body.result;
  const answer = (parts: unknown[], metadata?: Record<string, unknown>) =>
    rpc("SendMessage", {
      message: jsonMessage("", { taskId: id, parts, ...(metadata && { metadata }) }),
      configuration: { returnImmediately: true },
    });
  const unnamed = await answer([{ text: "yes" }]);
  expect(unnamed.body.error.message).toContain("deploy, when");
  const partly = await answer([{ text: "yes", metadata: { request_id: "deploy" } }]);
  expect(partly.body.error.data[1].fieldViolations).toEqual([
    { field: "answers.when", description: "missing" },
  ]);
  const [deploy, when] = status.message.parts;
  const whole = () =>
    answer(
      [
        { text: "go", metadata: { requestId: deploy.metadata.requestId, decision: "approve" } },
        { data: { at: 9 }, metadata: { requestId: when.metadata.requestId } },
      ],
      { interruptId: status.message.metadata.interruptId },
    );
  expect((await whole()).body.result.task.status.state).toBe("TASK_STATE_SUBMITTED");
  const next = await leaseOf(agent);
  const asked = await agent.interrupt(next.lease, {
    requests: [
      { request_id: "deploy", text: "deploy?" },
      { request_id: "when", text: "when?" },
    ],
  });
  expect(asked.body.answers).toMatchObject({
    deploy: { decision: "approve", message: { parts: [{ text: "go" }] } },
    when: { data: { at: 9 } },
  });
});

test("a repeated answer that names its question does not answer the next one", async () => {
  const { agent, begin, raw } = await startA2aBroker();
  const { rpc } = raw;
  const { id } = await begin();
  await agent.interrupt((await leaseOf(agent)).lease, { text: "first?", request_id: "1" });
  const { interrupt } = (await rpc("GetTask", { id })).body.result.metadata.errand;
  const message = jsonMessage("yes", {
    taskId: id,
    metadata: { interruptId: interrupt.id, decision: "approve" },
  });
  const send = () => rpc("SendMessage", { message, configuration: { returnImmediately: true } });
  expect((await send()).body.result.task.status.state).toBe("TASK_STATE_SUBMITTED");
  await agent.interrupt((await leaseOf(agent)).lease, { text: "second?", request_id: "2" });
  expect((await send()).body.result.task.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  const other = { ...message, parts: [{ text: "no" }] };
  const { body } = await rpc("SendMessage", { message: other });
  expect([body.error.code, body.error.data[0].metadata.code]).toEqual([-32004, "interrupt_not_open"]);
});
