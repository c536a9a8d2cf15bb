/** Push notifications over A2A: the official client on every binding, with a real receiver. */
import { StreamResponse, type TaskPushNotificationConfig } from "@a2a-js/sdk";
import { expect, onTestFinished, test } from "vitest";
import { requireValidPush, strictFetch } from "../../support/a2a-schema/check.ts";
import { as } from "../../support/broker.ts";
import { type Received, startReceiver } from "../../support/receiver.ts";
import { until } from "../../support/until.ts";
import {
  asTask,
  BINDINGS,
  jsonMessage,
  leaseOf,
  lineOf,
  rawCalls,
  sdkClient,
  sdkMessage,
  sendParams,
  startA2aBroker,
  stateOf,
  textOf,
} from "./support.ts";

/** Every notification must be valid. */
const startPushReceiver: typeof startReceiver = async (answer) => {
  const receiver = await startReceiver(answer);
  onTestFinished(() => {
    for (const { headers, body } of receiver.received) requireValidPush(headers["content-type"], body);
  });
  return receiver;
};

const setup = () => startA2aBroker({ callbackAllow: ["127.0.0.1"], callbackRetryMs: () => 20 });

const configOf = (taskId: string, url: string, id = "mine"): TaskPushNotificationConfig => ({
  tenant: "",
  taskId,
  id,
  url,
  token: "a-token",
  authentication: { scheme: "Bearer", credentials: "let-me-in" },
});

const updates = (bodies: readonly { readonly body: string }[]) =>
  bodies.map(({ body }) => StreamResponse.fromJSON(JSON.parse(body)));

test.each(BINDINGS)(
  "%s: §3.1.7-10 configs are created, shown, listed and deleted, and notified of later events",
  async (binding) => {
    const { url, agent, caller } = await setup();
    const receiver = await startPushReceiver();
    const client = await sdkClient(url, "scout", caller.token, binding);
    const task = asTask(await client.sendMessage(sendParams(sdkMessage("hi"), { returnImmediately: true })));
    const config = configOf(task.id, receiver.url);
    expect(await client.createTaskPushNotificationConfig(config)).toEqual(config);
    const other = configOf(task.id, `${receiver.url}/other`, "other");
    await client.createTaskPushNotificationConfig(other);
    const asked = { tenant: "", taskId: task.id, id: "mine" };
    expect(await client.getTaskPushNotificationConfig(asked)).toEqual(config);
    const all = { tenant: "", taskId: task.id, pageSize: 0, pageToken: "" };
    expect((await client.listTaskPushNotificationConfig(all)).configs).toEqual([config, other]);
    await client.deleteTaskPushNotificationConfig({ ...asked, id: "other" });
    await client.deleteTaskPushNotificationConfig({ ...asked, id: "other" });
    expect((await client.listTaskPushNotificationConfig(all)).configs).toEqual([config]);
    await expect(client.getTaskPushNotificationConfig({ ...asked, id: "other" })).rejects.toThrow(/no push/);

    const { lease } = await leaseOf(agent);
    await agent.reply(lease, { text: "done" });
    await until(() => receiver.received.length === 2);
    for (const { path, headers } of receiver.received) {
      expect(path).toBe("/hook");
      expect(headers["x-a2a-notification-token"]).toBe("a-token");
      expect(headers.authorization).toBe("Bearer let-me-in");
    }
    const types = receiver.received.map(({ headers }) => headers["content-type"]);
    if (binding.endsWith("0.3")) {
      expect(types).toEqual(["application/json", "application/json"]);
      const [, last] = receiver.received.map(({ body }) => JSON.parse(body));
      expect(last).toMatchObject({ kind: "task", id: task.id, status: { state: "completed" } });
      expect(last.artifacts).toMatchObject([{ parts: [{ kind: "text", text: "done" }] }]);
    } else {
      expect(types).toEqual(["application/a2a+json", "application/a2a+json"]);
      const [first, last] = updates(receiver.received);
      expect(first && lineOf(first)).toBe("WORKING");
      expect(last?.payload?.$case).toBe("task");
      const ended = last?.payload?.$case === "task" ? last.payload.value : undefined;
      expect(ended && [ended.id, stateOf(ended), textOf(ended.artifacts[0]?.parts)]).toEqual([
        task.id,
        "COMPLETED",
        "done",
      ]);
    }
  },
);

test.each(BINDINGS)("%s: §3.2.2 a config that comes with a message gets all events", async (binding) => {
  const { url, agent, caller } = await setup();
  const receiver = await startPushReceiver();
  const client = await sdkClient(url, "scout", caller.token, binding);
  const inline = { returnImmediately: true, taskPushNotificationConfig: configOf("", receiver.url) };
  const task = asTask(await client.sendMessage(sendParams(sdkMessage("hi"), inline)));
  const { lease } = await leaseOf(agent);
  await agent.interrupt(lease, { text: "which?" });
  await until(() => receiver.received.length === 3);
  const seqs = receiver.received.map(({ headers }) => String(headers["webhook-id"]));
  expect(seqs).toEqual([1, 2, 3].map((seq) => `evt_${task.id}_${seq}`));
  if (!binding.endsWith("0.3")) {
    expect(updates(receiver.received).map(lineOf)).toEqual(["SUBMITTED", "WORKING", "INPUT_REQUIRED which?"]);
  }
  // The answer adds a second config, which is notified of the answer's effect.
  const second = await startPushReceiver();
  const more = { returnImmediately: true, taskPushNotificationConfig: configOf("", second.url, "second") };
  await client.sendMessage(sendParams(sdkMessage("that", { taskId: task.id }), more));
  await agent.reply((await leaseOf(agent)).lease, { text: "done" });
  await until(() => second.received.length === 3 && receiver.received.length === 6);
  expect(second.received.map(({ headers }) => headers["webhook-id"])).toEqual(
    [4, 5, 6].map((seq) => `evt_${task.id}_${seq}`),
  );
});

test("in 0.3 a request without a config id gets the task's only config", async () => {
  const { raw, caller } = await setup();
  const { id } = (await caller.delegate("scout")).body;
  const legacy = { "a2a-version": "0.3" };
  for (const url of ["http://127.0.0.1:1/old", "http://127.0.0.1:1/new"]) {
    const config = { taskId: id, pushNotificationConfig: { url } };
    const { body } = await raw.rpc("tasks/pushNotificationConfig/set", config, legacy);
    expect(body.result).toEqual({ taskId: id, pushNotificationConfig: { id, url } });
  }
  const { body } = await raw.rpc("tasks/pushNotificationConfig/get", { id }, legacy);
  expect(body.result.pushNotificationConfig.url).toBe("http://127.0.0.1:1/new");
  const all = await raw.rpc("tasks/pushNotificationConfig/list", { id }, legacy);
  expect(all.body.result).toHaveLength(1);
});

test("a retried create notifies the receiver once", async () => {
  const { agent, raw } = await setup();
  const { url, received } = await startPushReceiver();
  const sendWith = (message: unknown, hook: string, headers = {}) =>
    raw.rpc(
      "SendMessage",
      { message, configuration: { returnImmediately: true, taskPushNotificationConfig: { url: hook } } },
      headers,
    );
  const key = { "idempotency-key": "once" };
  const message = jsonMessage("x");
  const { id } = (await sendWith(message, url, key)).body.result.task;
  expect((await sendWith(message, url, key)).body.result.task.id).toBe(id);
  const elsewhere = await sendWith(message, `${url}/elsewhere`, key);
  expect(elsewhere.body.error.data[0].metadata.code).toBe("idempotency_conflict");

  const { interrupt_id } = (await agent.interrupt((await leaseOf(agent)).lease, { text: "?" })).body;
  const answer = jsonMessage("yes", { taskId: id, metadata: { interrupt_id } });
  for (let n = 0; n < 2; n += 1) expect((await sendWith(answer, url)).body.result.task.id).toBe(id);
  const made = await raw.rpc("CreateTaskPushNotificationConfig", { taskId: id, url });
  const { configs } = (await raw.rpc("ListTaskPushNotificationConfigs", { taskId: id })).body.result;
  expect(configs).toEqual([made.body.result]);
  await agent.reply((await leaseOf(agent)).lease);
  await until(() => received.length === 6);
  expect(new Set(received.map(({ headers }) => headers["webhook-id"])).size).toBe(6);
});

test.each(["JSON-RPC of 0.3", "HTTP+JSON of 0.3"] as const)(
  "%s: a config that comes with a message without an id is the task's only one, too",
  async (binding) => {
    const { url, caller } = await setup();
    const client = await sdkClient(url, "scout", caller.token, binding);
    const config = configOf("", "http://127.0.0.1:1/one", "");
    const sent = sendParams(sdkMessage("hi"), {
      returnImmediately: true,
      taskPushNotificationConfig: config,
    });
    const { id } = asTask(await client.sendMessage(sent));
    await client.createTaskPushNotificationConfig(configOf(id, "http://127.0.0.1:1/two", ""));
    const all = { tenant: "", taskId: id, pageSize: 0, pageToken: "" };
    const { configs } = await client.listTaskPushNotificationConfig(all);
    expect(configs.map((one) => [one.id, one.url])).toEqual([[id, "http://127.0.0.1:1/two"]]);
  },
);

test("HTTP+JSON: 201 with the config, 204 without a body, pages with their token", async () => {
  const { raw } = await setup();
  const sent = await raw.rest("POST", "/message:send", {
    message: jsonMessage("hi"),
    configuration: { returnImmediately: true },
  });
  const { id } = sent.body.task;
  const path = `/tasks/${id}/pushNotificationConfigs`;
  const made = await raw.rest("POST", path, { url: "http://127.0.0.1:1/" });
  expect(made.status).toBe(201);
  expect(made.body).toEqual({ taskId: id, id: expect.stringMatching(/^psh_/), url: "http://127.0.0.1:1/" });
  await raw.rest("POST", path, { url: "http://127.0.0.1:1/", id: "zzz" });
  const page = await raw.rest("GET", `${path}?pageSize=1`);
  expect(page.body.configs).toHaveLength(1);
  const rest = await raw.rest("GET", `${path}?pageSize=1&pageToken=${page.body.nextPageToken}`);
  expect(rest.body).toMatchObject({ configs: [{ id: "zzz" }] });
  expect(rest.body.nextPageToken ?? "").toBe("");
  for (let times = 0; times < 2; times += 1) {
    const gone = await raw.rest("DELETE", `${path}/zzz`);
    expect([gone.status, gone.body]).toEqual([204, null]);
  }
  const missing = await raw.rest("GET", `${path}/zzz`);
  expect([missing.status, missing.body.error.details[0].reason]).toEqual([404, "TASK_NOT_FOUND"]);
});

test("§13.2 a forbidden URL is named in the error, and nothing is accepted with it", async () => {
  const { raw, caller } = await startA2aBroker();
  const url = "http://169.254.169.254/latest";
  const sent = await raw.rpc("SendMessage", {
    message: jsonMessage("hi"),
    configuration: { returnImmediately: true, taskPushNotificationConfig: { url } },
  });
  expect(sent.body.error.code).toBe(-32602);
  expect(JSON.stringify(sent.body.error.data)).toContain("configuration.taskPushNotificationConfig.url");
  expect((await caller.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
  const { id } = (await caller.delegate("scout")).body;
  for (const wrong of [
    { url },
    { url: "https://example.com/", token: "a\r\nb: c" },
    { url: "ftp://example.com/" },
  ]) {
    const refused = await raw.rpc("CreateTaskPushNotificationConfig", { taskId: id, ...wrong });
    expect(refused.body.error.code).toBe(-32602);
  }
});

test("§13.1 another caller's or another agent's task is not found; the agent itself is refused", async () => {
  const { url, agent, caller } = await setup();
  const { id } = (await caller.delegate("scout")).body;
  const bob = await as(url, "caller:bob");
  await as(url, "agent:smith").then((smith) => smith.agent("smith"));
  const calls: [string, object][] = [
    ["CreateTaskPushNotificationConfig", { taskId: id, url: "http://127.0.0.1:1/" }],
    ["GetTaskPushNotificationConfig", { taskId: id, id: "p" }],
    ["ListTaskPushNotificationConfigs", { taskId: id }],
    ["DeleteTaskPushNotificationConfig", { taskId: id, id: "p" }],
  ];
  for (const [method, params] of calls) {
    const foreign = await rawCalls(url, bob.token).rpc(method, params);
    const elsewhere = await rawCalls(url, caller.token, "smith").rpc(method, params);
    const target = await rawCalls(url, agent.token).rpc(method, params);
    expect([foreign, elsewhere].map(({ body }) => body.error.code)).toEqual([-32001, -32001]);
    expect(target.body.error.data[0].reason).toBe("FORBIDDEN");
  }
});

const partsOf = (received: readonly Received[]): string[] =>
  received.map(({ headers }) => String(headers["webhook-id"]).replace(/^evt_dlg_\w_\w{26}_/, ""));

test("a push of several updates resumes at the one that failed", async () => {
  const { agent, raw, replies } = await setup();
  const receiver = await startPushReceiver((count) => (count === 4 || count === 5 ? 503 : 204));
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: receiver.url } };
  await raw.rpc("SendMessage", { message: jsonMessage("hi"), configuration });
  const { lease } = await leaseOf(agent);
  const artifacts = ["a", "b"].map((artifactId) => ({ artifactId, parts: [{ text: artifactId }] }));
  const status = {
    state: "TASK_STATE_WORKING",
    message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "at it" }] },
  };
  const result = { task: { id: "t", contextId: "c", status, artifacts } };
  await replies(lease, result);
  await agent.reply(lease);
  await until(() => receiver.received.length === 8);
  expect(partsOf(receiver.received)).toEqual(["1", "2", "3", "3_1", "3_1", "3_1", "3_2", "4"]);
  expect(updates(receiver.received).slice(2, 7).map(lineOf)).toEqual([
    "artifact a a",
    "artifact b b",
    "artifact b b",
    "artifact b b",
    "WORKING at it",
  ]);
});

test("artifacts of a lost attempt are dropped", async () => {
  const { agent, raw } = await setup();
  const receiver = await startPushReceiver();
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: receiver.url } };
  await raw.rpc("SendMessage", { message: jsonMessage("hi"), configuration });
  const { lease } = await leaseOf(agent);
  const artifact = { artifactId: "draft", parts: [{ text: "x" }] };
  await agent.call("POST", `/v1/leases/${lease}/artifacts`, { artifact });
  await until(() => receiver.received.length === 3);
  await agent.release(lease);
  await until(() => receiver.received.length === 5);
  const last = updates(receiver.received).slice(2);
  expect(last.map((update) => lineOf(update).trim())).toEqual([
    "artifact draft x",
    "artifact draft",
    "SUBMITTED",
  ]);
  const [, dropped] = last;
  expect(dropped?.payload?.$case === "artifactUpdate" && dropped.payload.value.artifact?.metadata).toEqual({
    dropped: true,
  });
  expect(partsOf(receiver.received)).toEqual(["1", "2", "3", "4", "4_1"]);
});

test("§3.3.4 the card declares push notifications", async () => {
  const { url } = await startA2aBroker();
  const card = await (await strictFetch(`${url}/a2a/scout/.well-known/agent-card.json`)).json();
  expect(card.capabilities.pushNotifications).toBe(true);
});
