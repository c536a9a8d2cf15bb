/**
 * The A2A specification's (1.0) requirements for a server; each test names its section. Operations of the SDK's client
 * are in operations.test.ts, errors in malformed.test.ts, cards in card.test.ts. One file, in the order of the sections,
 * so that a missing requirement is easy to find.
 */
import { expect, test } from "vitest";
import { strictFetch } from "../../support/a2a-schema/check.ts";
import { as, request } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import {
  asTask,
  collect,
  jsonMessage,
  leaseOf,
  rawCalls,
  sdkClient,
  sdkMessage,
  sendParams,
  startA2aBroker,
} from "./support.ts";

const NOBODY = `dlg_0_${"0".repeat(26)}`;

async function setup(options: Parameters<typeof startA2aBroker>[0] = {}) {
  const broker = await startA2aBroker(options);
  const client = await sdkClient(broker.url, "scout", broker.caller.token);
  return { ...broker, client };
}

/** Reads a JSON-RPC stream without the SDK: one object for each event. */
async function rawStream(url: string, token: string, method: string, params: unknown) {
  const events: ReturnType<typeof JSON.parse>[] = [];
  const lines: string[] = [];
  const cut = new AbortController();
  const response = await strictFetch(`${url}/a2a/scout/rpc`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", "a2a-version": "1.0" },
    body: JSON.stringify({ jsonrpc: "2.0", id: "s", method, params }),
    signal: cut.signal,
  });
  let open = true;
  void (async () => {
    let text = "";
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk, { stream: true });
        const whole = text.split("\n");
        text = whole.pop() ?? "";
        lines.push(...whole);
        for (const line of whole) if (line.startsWith("data: ")) events.push(JSON.parse(line.slice(6)));
      }
    } catch {
      // The stream was cut. One that is not valid fails the test at its end; see startA2aBroker.
    }
    open = false;
  })();
  return { response, events, lines, isOpen: () => open, cut: () => cut.abort() };
}

test("§3.1.1 a message to a finished task is an unsupported operation", async () => {
  const { raw, begin, agent } = await setup();
  const { id } = await begin();
  const { lease } = await leaseOf(agent);
  const configuration = { returnImmediately: true };
  const known = { message: jsonMessage("hurry", { taskId: id }), configuration };
  expect((await raw.rpc("SendMessage", known)).body.result.task.id).toBe(id);
  await agent.reply(lease);
  // Also a message that the task has already.
  for (const params of [known, { message: jsonMessage("more", { taskId: id }) }]) {
    const { body } = await raw.rpc("SendMessage", params);
    expect([body.error.code, body.error.data[0].reason]).toEqual([-32004, "UNSUPPORTED_OPERATION"]);
  }
});

test("§3.1.1 a message to an unknown task is TaskNotFound", async () => {
  const { raw } = await setup();
  const { body } = await raw.rpc("SendMessage", { message: jsonMessage("more", { taskId: NOBODY }) });
  expect([body.error.code, body.error.data[0].reason]).toEqual([-32001, "TASK_NOT_FOUND"]);
});

test("§3.1.2 a stream begins with the task and closes at its end", async () => {
  const { url, caller, agent } = await setup();
  const stream = await rawStream(url, caller.token, "SendStreamingMessage", { message: jsonMessage("work") });
  expect(stream.response.headers.get("content-type")).toMatch(/^text\/event-stream/);
  await agent.reply((await leaseOf(agent)).lease, { text: "done" });
  await until(() => !stream.isOpen());
  expect(stream.events.map(({ id }) => id)).toEqual(["s", "s", "s", "s"]);
  expect(stream.events.map(({ result }) => Object.keys(result))).toEqual([
    ["task"],
    ["statusUpdate"],
    ["artifactUpdate"],
    ["statusUpdate"],
  ]);
  expect(stream.lines.filter((line) => line.startsWith("event:"))).toEqual([]);
});

test("§3.1.4 tasks are listed most recently changed first, always with a nextPageToken", async () => {
  const { raw, begin, agent } = await setup();
  const tasks = [await begin(), await begin(), await begin()];
  const { lease } = await leaseOf(agent);
  await agent.reply(lease);
  const { body } = await raw.rpc("ListTasks", { pageSize: 2 });
  expect(body.result.tasks.map(({ id }: { id: string }) => id)).toEqual([tasks[0].id, tasks[2].id]);
  expect([body.result.pageSize, body.result.totalSize]).toEqual([2, 3]);
  const last = await raw.rpc("ListTasks", { pageSize: 2, pageToken: body.result.nextPageToken });
  expect(last.body.result.tasks.map(({ id }: { id: string }) => id)).toEqual([tasks[1].id]);
  expect(last.body.result.nextPageToken).toBe("");
  const none = await raw.rpc("ListTasks", { contextId: "nobody.s" });
  expect(none.body.result).toEqual({ tasks: [], nextPageToken: "", pageSize: 0, totalSize: 0 });
});

test("§3.1.4 artifacts are omitted unless requested, and pages have 1 to 100 tasks", async () => {
  const { raw, begin, agent } = await setup();
  await begin();
  await agent.reply((await leaseOf(agent)).lease, {
    artifacts: [{ artifactId: "a", parts: [{ text: "x" }] }],
  });
  const [without] = (await raw.rpc("ListTasks", {})).body.result.tasks;
  expect("artifacts" in without).toBe(false);
  const [having] = (await raw.rpc("ListTasks", { includeArtifacts: true })).body.result.tasks;
  expect(having.artifacts).toEqual([{ artifactId: "a", parts: [{ text: "x" }] }]);
  for (const pageSize of [0, 101, "x", 1.5]) {
    expect((await raw.rpc("ListTasks", { pageSize })).body.error.code, String(pageSize)).toBe(-32602);
  }
});

test("§3.1.4 statusTimestampAfter is inclusive; status and context filter", async () => {
  const { raw, begin, agent } = await setup();
  const first = await begin();
  await agent.reply((await leaseOf(agent)).lease);
  const second = await begin({ contextId: "ours" });
  const ids = async (params: unknown) =>
    (await raw.rpc("ListTasks", params)).body.result.tasks.map(({ id }: { id: string }) => id);
  const { timestamp } = second.status;
  expect(await ids({ statusTimestampAfter: timestamp })).toEqual([second.id]);
  const later = new Date(Date.parse(timestamp) + 1).toISOString();
  expect(await ids({ statusTimestampAfter: later })).toEqual([]);
  expect(await ids({ status: "TASK_STATE_COMPLETED" })).toEqual([first.id]);
  expect(await ids({ contextId: "ours" })).toEqual([second.id]);
});

test("§3.1.4 a caller lists only its own tasks; one that sees all lists all", async () => {
  const { url, raw, begin } = await setup();
  const { id } = await begin();
  const bob = await as(url, "caller:bob");
  expect((await rawCalls(url, bob.token).rpc("ListTasks", {})).body.result.tasks).toEqual([]);
  const wall = await as(url, "viewer:wall");
  const seen = await rawCalls(url, wall.token).rpc("ListTasks", {});
  expect(seen.body.result.tasks.map((task: { id: string }) => task.id)).toEqual([id]);
  expect((await raw.rpc("ListTasks", {})).body.result.tasks).toHaveLength(1);
});

test("§3.1.5 §3.3.1 a cancel may be repeated; a task that ended otherwise is not cancelable", async () => {
  const { raw, begin, agent } = await setup();
  const { id } = await begin();
  for (const _ of [1, 2]) {
    const { body } = await raw.rpc("CancelTask", { id });
    expect(body.result.status.state).toBe("TASK_STATE_CANCELED");
  }
  const other = await begin();
  await agent.reply((await leaseOf(agent)).lease);
  const { body } = await raw.rpc("CancelTask", { id: other.id });
  expect([body.error.code, body.error.data[0].reason]).toEqual([-32002, "TASK_NOT_CANCELABLE"]);
  expect((await raw.rpc("CancelTask", { id: NOBODY })).body.error.code).toBe(-32001);
});

test("§3.1.6 a subscription begins with the task; a finished task has none", async () => {
  const { url, raw, caller, begin, agent } = await setup();
  const { id } = await begin();
  const stream = await rawStream(url, caller.token, "SubscribeToTask", { id });
  await until(() => stream.events.length === 1);
  expect(stream.events[0].result.task.id).toBe(id);
  await agent.reply((await leaseOf(agent)).lease);
  await until(() => !stream.isOpen());
  expect(stream.events.at(-1).result.statusUpdate.status.state).toBe("TASK_STATE_COMPLETED");
  const { body, headers } = await raw.rpc("SubscribeToTask", { id });
  expect([body.error.code, headers.get("content-type")]).toEqual([-32004, "application/json"]);
});

test("§3.1.6 a subscription to a task with an open question continues after the answer", async () => {
  const { url, raw, caller, begin, agent } = await setup();
  const { id } = await begin();
  await agent.interrupt((await leaseOf(agent)).lease, { text: "which?" });
  const stream = await rawStream(url, caller.token, "SubscribeToTask", { id });
  await until(() => stream.events.length === 1);
  await raw.rpc("SendMessage", {
    message: jsonMessage("that", { taskId: id }),
    configuration: { returnImmediately: true },
  });
  await agent.reply((await leaseOf(agent)).lease, { text: "done" });
  await until(() => !stream.isOpen());
  const states = stream.events.flatMap(({ result }) => result.statusUpdate?.status.state ?? []);
  expect(states).toEqual(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
});

test("§3.2.2 a blocking send returns at a question; the answer's send returns at the end", async () => {
  const { raw, agent } = await setup();
  const sent = raw.rpc("SendMessage", { message: jsonMessage("work") });
  await agent.interrupt((await leaseOf(agent)).lease, { text: "which?" });
  const { task } = (await sent).body.result;
  expect([task.status.state, task.status.message.parts]).toEqual([
    "TASK_STATE_INPUT_REQUIRED",
    [{ text: "which?" }],
  ]);
  const answered = raw.rpc("SendMessage", { message: jsonMessage("that", { taskId: task.id }) });
  await agent.reply((await leaseOf(agent)).lease, {
    artifacts: [{ artifactId: "a", parts: [{ text: "x" }] }],
  });
  const done = (await answered).body.result.task;
  expect([done.status.state, done.artifacts.length]).toEqual(["TASK_STATE_COMPLETED", 1]);
});

test("§3.2.2 returnImmediately returns at once, even when a poll waits", async () => {
  const { begin } = await setup();
  expect((await begin()).status.state).toBe("TASK_STATE_SUBMITTED");
});

test("§3.2.4 there are at most historyLength messages, and none for 0", async () => {
  const { raw, begin, agent, caller } = await setup();
  const { id } = await begin();
  await caller.message(id, "second");
  await agent.lease("scout");
  const texts = async (historyLength?: number) => {
    const { body } = await raw.rpc("GetTask", { id, ...(historyLength !== undefined && { historyLength }) });
    return body.result.history?.map((message: { parts: { text: string }[] }) => message.parts[0]?.text);
  };
  expect(await texts()).toEqual(["work", "second"]);
  expect(await texts(1)).toEqual(["second"]);
  expect(await texts(9)).toEqual(["work", "second"]);
  expect(await texts(0)).toBeUndefined();
});

test("§3.3.2 §13.1 every operation answers the same for another caller's task and for none", async () => {
  const { url, begin } = await setup();
  const { id } = await begin();
  const bob = rawCalls(url, (await as(url, "caller:bob")).token);
  for (const method of ["GetTask", "CancelTask", "SubscribeToTask"]) {
    const [foreign, none] = [await bob.rpc(method, { id }), await bob.rpc(method, { id: NOBODY })];
    expect([foreign.status, foreign.body.error.code], method).toEqual([none.status, -32001]);
    expect(foreign.body.error.message.replace(id, NOBODY)).toBe(none.body.error.message);
  }
  const sent = await bob.rpc("SendMessage", { message: jsonMessage("mine", { taskId: id }) });
  expect(sent.body.error.code).toBe(-32001);
});

test("§3.3.2 a task of one agent is not found at another", async () => {
  const { url, caller, begin } = await setup();
  await (await as(url, "operator")).agent("other");
  const { id } = await begin();
  const { body } = await rawCalls(url, caller.token, "other").rpc("GetTask", { id });
  expect(body.error.code).toBe(-32001);
});

test("§3.4.1 a contextId is generated, or kept as given, or refused if invalid", async () => {
  const { raw, begin } = await setup();
  expect((await begin()).contextId).toMatch(/^ctx_/);
  expect((await begin({ contextId: "Ours:1" })).contextId).toBe("Ours:1");
  const { body } = await raw.rpc("SendMessage", { message: jsonMessage("x", { contextId: "not\nours" }) });
  expect([body.error.code, body.error.data[1].fieldViolations[0].field]).toEqual([
    -32602,
    "message.contextId",
  ]);
});

test("§3.4.2 a repeated messageId creates another task", async () => {
  const { begin } = await setup();
  const [one, two] = [await begin({ messageId: "same" }), await begin({ messageId: "same" })];
  expect(one.id).not.toBe(two.id);
});

test("§3.4.3 a task's context is inferred, and a different one refused", async () => {
  const { raw, begin } = await setup();
  const { id, contextId } = await begin();
  const followed = async (more: Record<string, unknown>) =>
    (
      await raw.rpc("SendMessage", {
        message: jsonMessage("x", { taskId: id, ...more }),
        configuration: { returnImmediately: true },
      })
    ).body;
  expect((await followed({})).result.task.contextId).toBe(contextId);
  expect((await followed({ contextId })).result.task.contextId).toBe(contextId);
  expect((await followed({ contextId: "another" })).error.code).toBe(-32602);
});

test("§3.5.2 all streams of a task get the same; closing one affects neither the task nor the others", async () => {
  const { url, caller, agent, begin } = await setup();
  const { id } = await begin();
  const [one, two, gone] = await Promise.all(
    [1, 2, 3].map(() => rawStream(url, caller.token, "SubscribeToTask", { id })),
  );
  await until(() => [one, two, gone].every((stream) => stream?.events.length === 1));
  const { lease } = await leaseOf(agent);
  gone?.cut();
  for (const message of ["a", "b", "c"]) await agent.heartbeat(lease, { progress: { message } });
  await agent.reply(lease, { text: "done" });
  await until(() => one?.isOpen() === false && two?.isOpen() === false);
  expect(one?.events.length).toBe(7);
  expect(one?.events).toEqual(two?.events);
});

test("§3.5.2 a client that disconnects during a blocking send does not affect the task", async () => {
  const { url, caller, agent } = await setup();
  const cut = new AbortController();
  const sent = request(url, "POST", "/a2a/scout/rpc", {
    token: caller.token,
    headers: { "a2a-version": "1.0" },
    body: { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message: jsonMessage("work") } },
    signal: cut.signal,
  });
  const { lease, id } = await leaseOf(agent);
  cut.abort();
  await expect(sent).rejects.toThrow();
  expect((await agent.reply(lease)).body.outcome).toBe("matched");
  expect((await caller.get(id)).body.state).toBe("completed");
});

test("§3.5.2 a disconnected reader leaks nothing at the gateway", async () => {
  const { url, caller, begin, gateway } = await setup();
  const { id } = await begin();
  const { feed } = gateway.broker;
  const subscribe = feed.subscribe.bind(feed);
  const open = new Set<object>();
  feed.subscribe = (...args) => {
    const one = {};
    open.add(one);
    const end = subscribe(...args);
    return () => {
      open.delete(one);
      end();
    };
  };
  const streams = await Promise.all(
    ["SubscribeToTask", "SubscribeToTask"].map((method) => rawStream(url, caller.token, method, { id })),
  );
  await until(() => open.size === 2);
  for (const { cut } of streams) cut();
  await until(() => open.size === 0);
});

test("§3.6 only major and minor of the version count, in the header or the query; none means 0.3", async () => {
  const { url, caller, raw, begin } = await setup();
  const { id } = await begin();
  const get = (version?: string, query = "", method = "GetTask") =>
    request(url, "POST", `/a2a/scout/rpc${query}`, {
      token: caller.token,
      ...(version !== undefined && { headers: { "a2a-version": version } }),
      body: { jsonrpc: "2.0", id: 1, method, params: { id } },
    });
  expect((await get("1.0.7")).body.result.id).toBe(id);
  expect((await get(undefined, "?A2A-Version=1.0")).body.result.id).toBe(id);
  expect((await get("", "", "tasks/get")).body.result.kind).toBe("task");
  expect((await get("0.3", "", "tasks/get")).body.result.kind).toBe("task");
  expect((await get(undefined)).body.error).toMatchObject({
    code: -32601,
    message: expect.stringContaining("1.0"),
  });
  for (const version of ["2.0", "1.1", "0.2", "1", "latest"]) {
    const { body } = await get(version);
    expect([body.error.code, body.error.data[0].reason], version).toEqual([-32009, "VERSION_NOT_SUPPORTED"]);
  }
  expect(
    (await raw.rest("GET", `/tasks/${id}`, undefined, { "a2a-version": "9.9" })).body.error,
  ).toMatchObject({
    code: 400,
    status: "FAILED_PRECONDITION",
    details: [{ reason: "VERSION_NOT_SUPPORTED", domain: "a2a-protocol.org" }],
  });
});

test("§3.7 a reply without artifacts becomes an artifact, and the status message", async () => {
  const { raw, begin, agent } = await setup();
  const { id } = await begin();
  await agent.reply((await leaseOf(agent)).lease, { text: "result" });
  const { result } = (await raw.rpc("GetTask", { id })).body;
  expect(result.artifacts).toEqual([{ artifactId: "reply", name: "reply", parts: [{ text: "result" }] }]);
  expect(result.status.message.parts).toEqual([{ text: "result" }]);
});

test("§4.6.3 the answer lists the requested extensions that are active, in exactly that version", async () => {
  const { raw, begin } = await setup();
  const { id } = await begin();
  const said = async (extensions: string) =>
    (await raw.rpc("GetTask", { id }, { "a2a-extensions": extensions })).headers.get("a2a-extensions");
  expect(await said("urn:other, urn:errand:a2a:v2")).toBe("urn:errand:a2a:v2");
  // The first version has other names in the metadata.
  expect(await said("urn:errand:a2a:v1")).toBeNull();
  const rest = await raw.rest("GET", `/tasks/${id}`, undefined, { "a2a-extensions": "urn:errand:a2a:v2" });
  expect(rest.headers.get("a2a-extensions")).toBe("urn:errand:a2a:v2");
});

test("§5.1 both bindings return the same task", async () => {
  const { raw, begin, agent } = await setup();
  const { id } = await begin();
  await agent.interrupt((await leaseOf(agent)).lease, { text: "which?" });
  const { body } = await raw.rest("GET", `/tasks/${id}`);
  expect((await raw.rpc("GetTask", { id })).body.result).toEqual(body);
  const lists = [
    await raw.rest("GET", "/tasks?includeArtifacts=true"),
    await raw.rpc("ListTasks", { includeArtifacts: true }),
  ];
  expect(lists[0]?.body).toEqual(lists[1]?.body.result);
});

test("§5.5 §5.6.1 §5.7 members are camel case, enums are names, times end in Z, unknown members are ignored", async () => {
  const { raw, begin } = await setup();
  const task = await begin({ someday: true });
  expect(Object.keys(task)).toEqual(["id", "contextId", "status", "history", "metadata"]);
  expect(task.status.state).toBe("TASK_STATE_SUBMITTED");
  expect(task.status.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(task.history[0]).toMatchObject({ role: "ROLE_USER", taskId: task.id, contextId: task.contextId });
  expect((await raw.rpc("GetTask", { id: task.id, someday: 1 })).body.result.id).toBe(task.id);
});

test("§7.4 every request except for the public card needs a token", async () => {
  const { url } = await setup();
  const nobody = rawCalls(url, null);
  const refused = [
    await nobody.rpc("GetTask", { id: NOBODY }),
    await nobody.rpc("GetExtendedAgentCard", {}),
    await nobody.rest("GET", "/extendedAgentCard"),
    await nobody.rest("GET", "/tasks"),
  ];
  for (const { status, headers } of refused) {
    expect([status, headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="errand"']);
  }
  expect(refused[2]?.body.error).toMatchObject({ code: 401, status: "UNAUTHENTICATED" });
  expect(refused[0]?.body).toMatchObject({ jsonrpc: "2.0", error: { code: -32000 } });
  expect((await request(url, "GET", "/a2a/scout/.well-known/agent-card.json", { token: null })).status).toBe(
    200,
  );
});

test("§7.6.1 a task asks for a credential with a message; streams stay open, and a message answers", async () => {
  const { url, raw, caller, agent, begin } = await setup();
  const { id } = await begin();
  const stream = await rawStream(url, caller.token, "SubscribeToTask", { id });
  await agent.interrupt((await leaseOf(agent)).lease, { kind: "auth", text: "log in at the vault" });
  await until(() => stream.events.length === 3);
  expect(stream.events[2].result.statusUpdate.status).toMatchObject({
    state: "TASK_STATE_AUTH_REQUIRED",
    message: { parts: [{ text: "log in at the vault" }] },
  });
  await raw.rpc("SendMessage", {
    message: jsonMessage("done", { taskId: id }),
    configuration: { returnImmediately: true },
  });
  await agent.reply((await leaseOf(agent)).lease, { text: "in" });
  await until(() => !stream.isOpen());
  expect(stream.events.at(-1).result.statusUpdate.status.state).toBe("TASK_STATE_COMPLETED");
});

test("§7.6.4 a request for a credential grants no permission", async () => {
  const { url, agent, begin } = await setup();
  const { id } = await begin();
  await agent.interrupt((await leaseOf(agent)).lease, { kind: "auth", text: "log in" });
  const bob = rawCalls(url, (await as(url, "caller:bob")).token);
  expect((await bob.rpc("SendMessage", { message: jsonMessage("x", { taskId: id }) })).body.error.code).toBe(
    -32001,
  );
  const wall = rawCalls(url, (await as(url, "viewer:wall")).token);
  const { status, body } = await wall.rpc("SendMessage", { message: jsonMessage("x", { taskId: id }) });
  expect([status, body.error.data[0].reason]).toEqual([403, "FORBIDDEN"]);
});

test("§9.1 §11.1 a repeated Idempotency-Key returns the first task; none is assumed", async () => {
  const { raw, begin } = await setup();
  const params = { message: jsonMessage("once"), configuration: { returnImmediately: true } };
  const send = async (key: string, more = {}) =>
    (await raw.rpc("SendMessage", { ...params, ...more }, { "idempotency-key": key })).body;
  const first = (await send("k")).result.task.id;
  expect((await send("k")).result.task.id).toBe(first);
  expect((await send("l")).result.task.id).not.toBe(first);
  expect((await send("k", { message: jsonMessage("other") })).error).toMatchObject({ code: -32602 });
  expect((await begin()).id).not.toBe(first);
});

test("§11.3 HTTP+JSON answers in the caller's media type", async () => {
  const { raw, begin } = await setup();
  const { id } = await begin();
  const typeOf = async (headers: Record<string, string>) =>
    (await raw.rest("GET", `/tasks/${id}`, undefined, headers)).headers.get("content-type");
  expect(await typeOf({})).toBe("application/a2a+json");
  expect(await typeOf({ accept: "application/json" })).toBe("application/json");
  const sent = await raw.rest("POST", "/message:send", {
    message: jsonMessage("x"),
    configuration: { returnImmediately: true },
  });
  expect([sent.status, sent.headers.get("content-type")]).toEqual([200, "application/json"]);
});

test("§11.7 a transition to input-required closes the streams", async () => {
  const { client, agent } = await setup();
  const stream = collect(client.sendMessageStream(sendParams(sdkMessage("work"))));
  await agent.interrupt((await leaseOf(agent)).lease, { text: "which?" });
  await stream.ended;
  expect(stream.lines().at(-1)).toBe("INPUT_REQUIRED which?");
});

test("§13.4 neither tokens nor messages are logged", async () => {
  const { client, caller, agent, log } = await setup();
  const sent = client.sendMessage(sendParams(sdkMessage("a secret message")));
  await agent.reply((await leaseOf(agent)).lease, { text: "a secret reply" });
  asTask(await sent);
  const text = log.join("");
  expect([text.includes(caller.token), text.includes("secret")]).toEqual([false, false]);
});

test("0.3: a stream's last update is final, whether an end or a question", async () => {
  const { url, caller, agent } = await setup();
  const message = { kind: "message", messageId: "m", role: "user", parts: [{ kind: "text", text: "x" }] };
  const headers = {
    authorization: `Bearer ${caller.token}`,
    "content-type": "application/json",
    "a2a-version": "0.3",
  };
  const open = [
    ["rpc", { jsonrpc: "2.0", id: 1, method: "message/stream", params: { message } }],
    ["rest/v1/message:stream", { message }],
  ] as const;
  for (const [path, body] of open) {
    for (const end of ["interrupt", "reply"] as const) {
      const response = strictFetch(`${url}/a2a/scout/${path}`, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      const { lease, id } = await leaseOf(agent);
      await (end === "reply" ? agent.reply(lease) : agent.interrupt(lease, { text: "which?" }));
      const text = await (await response).text();
      const updates = text
        .split("\n")
        .flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6))] : []));
      const finals = updates.flatMap((one) => (one.result ?? one.statusUpdate)?.final ?? []);
      expect(finals, `${path} ${end}`).toEqual([false, true].slice(-finals.length));
      expect(finals.at(-1)).toBe(true);
      await caller.cancel(id);
    }
  }
});
