/**
 * The Tasks extension: a delegation as a task, through the extension's client and on the wire. One subject: each test
 * calls the extension's methods on one task, from its creation through questions to its end.
 */
import { expect, onTestFinished, test } from "vitest";
import { as, startBroker } from "../../support/broker.ts";
import { callModern, MODERN, mcpClient, requestModern, TASKS_CAPABILITY } from "../../support/mcp.ts";
import { type Rpc, taskSession } from "../../support/tasks-client.ts";
import { until } from "../../support/until.ts";

const WITH_TASKS = { capabilities: TASKS_CAPABILITY };
const INTERVAL_MS = 1_000;

async function setup() {
  const broker = await startBroker();
  const { url } = broker;
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const ask = (method: string, params: Record<string, unknown>, token = alice.token) =>
    requestModern(url, token, method, params, WITH_TASKS);
  /** Creates a task with delegate_task. */
  const start = async (more: Record<string, unknown> = {}) => {
    const args = { agent: "scout", task: "do it", ...more };
    const { body } = await callModern(url, alice.token, "delegate_task", args, WITH_TASKS);
    return body.result;
  };
  const get = async (taskId: string) => (await ask("tasks/get", { taskId })).body.result;
  const lease = async (): Promise<string> => (await scout.lease("scout")).body.leases[0].lease_id;
  return { ...broker, scout, alice, ask, start, get, lease };
}

type Setup = Awaited<ReturnType<typeof setup>>;

/** The extension's own client. */
async function session({ url, alice }: Setup, answer: (message: string) => Record<string, unknown>) {
  const client = await mcpClient(url, alice.token, "modern");
  const asked: string[] = [];
  const tasks = taskSession(client, {
    protocolVersion: MODERN,
    dispatch: async (request, signal): Promise<Rpc> => {
      const { method, params } = JSON.parse(JSON.stringify(request));
      const { _meta, ...rest } = params;
      const capabilities = _meta["io.modelcontextprotocol/clientCapabilities"];
      const { body } = await requestModern(url, alice.token, method, rest, {
        capabilities,
        ...(signal && { signal }),
      });
      return body;
    },
    onInput: async ({ params }) => {
      asked.push(String(params.message));
      return { action: "accept", content: answer(String(params.message)) };
    },
  });
  onTestFinished(() => tasks.close());
  return { tasks, asked };
}

test("the extension's client follows a delegation from working through a question to its end", async () => {
  const here = await setup();
  const { scout, lease } = here;
  const { tasks, asked } = await session(here, () => ({ answer: "blue" }));
  const execution = await tasks.callTool("delegate_task", { agent: "scout", task: "paint it" });
  expect(execution.kind).toBe("task");
  const seen: string[] = [];
  const settled = execution.settle({
    onEvent: ({ task }) => {
      if (task) seen.push(`${task.status}: ${task.statusMessage}`);
    },
  });
  const first = await lease();
  await scout.heartbeat(first, { progress: { message: "mixing", done: 1, total: 3 } });
  await until(() => seen.includes("working: scout: 1/3 mixing"), { what: "progress" });
  await scout.interrupt(first, { text: "Which colour?", request_id: "colour" });
  await until(() => asked.length > 0, { what: "the question" });
  const { body } = await scout.lease("scout", { wait_seconds: 20 });
  const [second] = body.leases;
  expect(second.request.params.message.parts).toEqual([{ text: "blue" }]);
  await scout.reply(second.lease_id, { text: "painted", usage: { input_tokens: 5 } });
  const { outcome } = await settled;
  expect(outcome.status).toBe("completed");
  expect(outcome.result.structuredContent).toMatchObject({ state: "completed", reply: { text: "painted" } });
  expect(outcome.result.structuredContent).toMatchObject({ usage: { input_tokens: 5, complete: true } });
  expect(asked).toEqual(["Which colour?"]);
  expect(seen.some((one) => one.startsWith("input_required"))).toBe(true);
}, 120_000);

test("the extension's client cancels one", async () => {
  const here = await setup();
  const { scout, lease } = here;
  const { tasks } = await session(here, () => ({}));
  const execution = await tasks.callTool("delegate_task", { agent: "scout", task: "paint it" });
  const lost = scout.heartbeat(await lease(), { wait_seconds: 20 });
  await execution.cancel();
  expect((await lost).body).toMatchObject({ code: "lease_lost", details: { reason: "canceled" } });
  expect((await execution.settle()).outcome.status).toBe("cancelled");
}, 120_000);

test("a task is stored before its handle is returned, and shows the delegation's data", async () => {
  const { start, get, scout, lease, clock, gateway } = await setup();
  const handle = await start({ ttl_seconds: 100 });
  const retention = gateway.broker.retentionMs;
  expect(handle).toMatchObject({
    resultType: "task",
    status: "working",
    statusMessage: "queued for scout",
    ttlMs: 100_000 + retention,
    pollIntervalMs: INTERVAL_MS,
  });
  const { taskId } = handle;
  expect((await scout.get(taskId)).body).toMatchObject({ id: taskId, delegator: "caller:alice" });
  const lease_id = await lease();
  await scout.heartbeat(lease_id, { progress: { current_step: "thinking", eta_seconds: 60 } });
  const working = await get(taskId);
  expect(working).toMatchObject({
    resultType: "complete",
    taskId,
    status: "working",
    statusMessage: "scout: thinking",
    pollIntervalMs: 6_000,
  });
  expect(working.lastUpdatedAt > handle.lastUpdatedAt).toBe(true);
  clock.offset_ms += 10_000;
  await scout.reply(lease_id, { text: "thought" });
  const done = await get(taskId);
  expect(done).toMatchObject({
    status: "completed",
    result: {
      resultType: "complete",
      structuredContent: { state: "completed", reply: { text: "thought" } },
    },
  });
  // From now on it is kept for the retention time.
  expect(done.ttlMs - retention).toBeGreaterThanOrEqual(10_000);
  expect(done.ttlMs - retention).toBeLessThan(60_000);
});

test("an agent's failure is a result, the broker's is an error", async () => {
  const { start, get, scout, lease, clock, gateway } = await setup();
  const { taskId: failing } = await start();
  await scout.reply(await lease(), {
    state: "failed",
    text: undefined,
    error: { code: "no_paint", message: "there is none" },
  });
  expect(await get(failing)).toMatchObject({
    status: "completed",
    statusMessage: "no_paint: there is none",
    result: {
      isError: true,
      structuredContent: { error: { category: "UPSTREAM", code: "no_paint", delegation_valid: false } },
    },
  });
  const { taskId: rejected } = await start();
  await scout.reply(await lease(), { state: "rejected", text: "no" });
  expect(await get(rejected)).toMatchObject({ status: "completed", result: { isError: true } });

  const { taskId: expired } = await start({ ttl_seconds: 5 });
  clock.offset_ms += 6_000;
  await gateway.sweep.tick();
  const failed = await get(expired);
  expect(failed).toMatchObject({
    status: "failed",
    error: {
      code: -32603,
      data: {
        category: "TIMEOUT",
        code: "deadline_exceeded",
        retryable: false,
        delegation_valid: false,
        recovery: expect.stringContaining("delegate_task"),
      },
    },
  });
  expect(failed).not.toHaveProperty("result");
});

test("questions are forms with keys unique within the task, answered in parts", async () => {
  const { start, get, ask, scout, lease } = await setup();
  const { taskId } = await start();
  const schema = { type: "object", properties: { size: { type: "integer" } }, required: ["size"] };
  const nested = { type: "object", properties: { deep: { type: "object" } } };
  await scout.interrupt(await lease(), {
    requests: [
      { request_id: "a", text: "Which?", options: ["x", "y"] },
      { request_id: "b", text: "How big?", schema },
      { request_id: "c", text: "Anything else?", schema: nested },
    ],
  });
  const asking = await get(taskId);
  expect(asking.status).toBe("input_required");
  const keys = Object.keys(asking.inputRequests);
  expect(keys).toHaveLength(3);
  const [a = "", b = "", c = ""] = keys;
  expect(asking.inputRequests[a]).toMatchObject({
    method: "elicitation/create",
    params: { message: "Which?", requestedSchema: { properties: { answer: { enum: ["x", "y"] } } } },
  });
  expect(asking.inputRequests[b].params.requestedSchema).toEqual(schema);
  expect(Object.keys(asking.inputRequests[c].params.requestedSchema.properties)).toEqual(["json"]);
  expect(asking.inputRequests[c].params.message).toContain(JSON.stringify(nested));

  const accept = (content: unknown) => ({ action: "accept", content });
  const update = (inputResponses: Record<string, unknown>) => ask("tasks/update", { taskId, inputResponses });
  const part = await update({ [a]: accept({ answer: "y" }), unheard_of: accept({}) });
  expect(part.body.result).toMatchObject({ resultType: "complete" });
  expect(Object.keys((await get(taskId)).inputRequests)).toEqual([b, c]);
  // The first answer to a request stays.
  await update({ [a]: accept({ answer: "x" }), [c]: { action: "cancel" } });
  expect(Object.keys((await get(taskId)).inputRequests)).toEqual([b, c]);
  // What does not fit is refused, and its question stays open.
  const unfit = (await update({ [b]: accept({ size: "3" }) })).body.error;
  expect(unfit.data.details.issues).toEqual([
    { path: "answers.b.data.size", reason: "must be a whole number" },
  ]);
  expect((await update({ [c]: accept({ json: "{" }) })).body.error.data.code).toBe("invalid_request");
  // A denial does not answer a question for data.
  await update({ [c]: { action: "decline" } });
  expect(Object.keys((await get(taskId)).inputRequests)).toEqual([b, c]);
  await update({ [b]: accept({ size: 3 }), [c]: accept({ json: '{"deep": {"er": 1}}' }) });
  expect((await get(taskId)).status).toBe("working");

  const { body } = await scout.lease("scout");
  const [second] = body.leases;
  const answers = second.delegation.history.filter(({ role }: { role: string }) => role === "ROLE_USER");
  expect(answers).toMatchObject([
    { parts: [{ text: "y" }], metadata: { request_id: "a" } },
    { parts: [{ data: { size: 3 } }], metadata: { request_id: "b" } },
    { parts: [{ data: { deep: { er: 1 } } }], metadata: { request_id: "c" } },
  ]);
  // The same request_id in another question has another key.
  await scout.interrupt(second.lease_id, {
    requests: [{ request_id: "a", text: "Which now?" }, { text: "And?" }],
  });
  const later = Object.keys((await get(taskId)).inputRequests);
  expect(later).toHaveLength(2);
  expect(later.filter((key) => keys.includes(key))).toEqual([]);
  // An answer to a closed question changes nothing.
  expect((await update({ [b]: accept({ size: 9 }) })).body.result).toBeDefined();
  expect((await get(taskId)).status).toBe("input_required");
});

test("a form shows a proposed action, and options of any type", async () => {
  const { start, get, ask, scout, lease } = await setup();
  const { taskId } = await start();
  const action = { name: "deploy", arguments: { host: "db1" } };
  const requests = [
    { request_id: "a", text: "Deploy?", action, edit: true },
    { request_id: "b", text: "Really?", action, options: ["approve", "deny", "later"] },
    { request_id: "c", text: "Which?", options: [7, { tag: 1 }] },
    { request_id: "d", text: "Now?", options: ["approve", "deny"] },
    { request_id: "e", text: "Destroy?", action },
  ];
  await scout.interrupt(await lease(), { requests });
  const { inputRequests } = await get(taskId);
  const [a = "", b = "", c = "", d = "", e = ""] = Object.keys(inputRequests);
  const fieldsOf = (key: string) => inputRequests[key].params.requestedSchema.properties;
  expect(inputRequests[a].params.message).toBe('Deploy?\n\nAction: deploy {\n  "host": "db1"\n}');
  expect(Object.keys(fieldsOf(a))).toEqual(["decision", "arguments", "comment"]);
  expect(fieldsOf(b)).toMatchObject({ decision: { enum: ["approve", "deny", "later"] } });
  expect(fieldsOf(c)).toMatchObject({ answer: { enum: ["7", '{"tag":1}'] } });
  const accept = (content: unknown) => ({ action: "accept", content });
  const inputResponses = {
    [a]: accept({ decision: "approve", arguments: '{"host": "db2"}', comment: "that one" }),
    [b]: accept({ decision: "later", comment: "after lunch" }),
    [c]: accept({ answer: '{"tag":1}' }),
    [d]: accept({ answer: "deny" }),
    [e]: { action: "decline" },
  };
  const { body } = await ask("tasks/update", { taskId, inputResponses });
  expect(body.result).toMatchObject({ resultType: "complete" });
  const { history } = (await scout.lease("scout")).body.leases[0].delegation;
  expect(history.slice(-5)).toMatchObject([
    { parts: [{ text: "that one" }, { data: { host: "db2" } }], metadata: { decision: "approve" } },
    { parts: [{ text: "later" }] },
    { parts: [{ data: { tag: 1 } }] },
    { parts: [], metadata: { decision: "deny" } },
    { parts: [], metadata: { decision: "deny" } },
  ]);
});

test("an accepted empty form is not an approval", async () => {
  const { start, get, ask, scout, lease } = await setup();
  const { taskId } = await start();
  await scout.interrupt(await lease(), {
    requests: [
      { request_id: "a", text: "Drop the table?" },
      { request_id: "b", text: "Which?", options: ["x", "y"] },
    ],
  });
  const keys = Object.keys((await get(taskId)).inputRequests);
  for (const content of [undefined, {}, { answer: "" }, { answer: 5 }, { decision: "yes" }]) {
    const inputResponses = Object.fromEntries(keys.map((key) => [key, { action: "accept", content }]));
    const { body } = await ask("tasks/update", { taskId, inputResponses });
    expect(body.result).toMatchObject({ resultType: "complete" });
    expect(Object.keys((await get(taskId)).inputRequests)).toEqual(keys);
  }
  const { taskId: locked } = await start();
  await scout.interrupt(await lease(), { kind: "auth", text: "Log in" });
  const [key = ""] = Object.keys((await get(locked)).inputRequests);
  await ask("tasks/update", {
    taskId: locked,
    inputResponses: { [key]: { action: "accept", content: { password: "hunter2" } } },
  });
  expect((await get(locked)).status).toBe("input_required");
});

test("answers that are too large together are discarded and asked for again", async () => {
  const { start, get, ask, scout, lease } = await setup();
  const { taskId } = await start();
  const requests = ["a", "b", "c", "d"].map((request_id) => ({ request_id, text: "?" }));
  await scout.interrupt(await lease(), { requests });
  const keys = Object.keys((await get(taskId)).inputRequests);
  const give = (key: string, answer: string) =>
    ask("tasks/update", { taskId, inputResponses: { [key]: { action: "accept", content: { answer } } } });
  const answers = [];
  for (const key of keys) answers.push((await give(key, "z".repeat(900_000))).body);
  expect(answers.at(-1)?.error).toMatchObject({ code: -32602, data: { code: "payload_too_large" } });
  expect(Object.keys((await get(taskId)).inputRequests)).toEqual(keys);
  for (const key of keys) await give(key, "short");
  expect((await get(taskId)).status).toBe("working");
});

test("a form never asks for a credential", async () => {
  const { start, get, ask, scout, lease } = await setup();
  const { taskId } = await start();
  await scout.interrupt(await lease(), {
    kind: "auth",
    text: "Log in at https://x.example",
    schema: { type: "object", properties: { password: { type: "string" } } },
  });
  const { inputRequests, status } = await get(taskId);
  expect(status).toBe("input_required");
  const [[key, form] = ["", undefined]] = Object.entries(inputRequests);
  expect(form).toMatchObject({
    params: {
      message: expect.stringContaining("Do not type secrets"),
      requestedSchema: { required: ["decision"] },
    },
  });
  expect(JSON.stringify(form)).not.toContain("password");
  const content = { decision: "approve", password: "hunter2" };
  await ask("tasks/update", { taskId, inputResponses: { [key]: { action: "accept", content } } });
  const { body } = await scout.lease("scout");
  expect(body.leases[0].delegation.history.at(-1)).toMatchObject({ metadata: { decision: "approve" } });
  expect(JSON.stringify(body)).not.toContain("hunter2");
});

test("cancel may be repeated, and does not change a finished task", async () => {
  const { start, get, ask, scout, lease } = await setup();
  const { taskId } = await start();
  for (const _ of [1, 2]) {
    expect((await ask("tasks/cancel", { taskId })).body.result).toMatchObject({ resultType: "complete" });
  }
  expect(await get(taskId)).toMatchObject({ status: "cancelled" });
  const { taskId: done } = await start();
  await scout.reply(await lease());
  expect((await ask("tasks/cancel", { taskId: done })).body.result).toMatchObject({ resultType: "complete" });
  expect((await get(done)).status).toBe("completed");
});

test("every method answers the same for another principal's task and for none", async () => {
  const { url, start, ask } = await setup();
  const { taskId } = await start();
  const bob = await as(url, "caller:bob");
  const none = `${taskId.slice(0, -4)}0000`;
  for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
    const more = method === "tasks/update" ? { inputResponses: {} } : {};
    const answers = await Promise.all([
      ask(method, { taskId, ...more }, bob.token),
      ask(method, { taskId: none, ...more }, bob.token),
    ]);
    const [foreign, unknown] = answers.map(({ status, body: { error } }) => {
      const { request_id, ...data } = error.data;
      expect(request_id).toMatch(/^req_/);
      return JSON.stringify([status, error.code, error.message, data]);
    });
    expect(foreign?.replaceAll(taskId, none)).toBe(unknown);
    expect(answers[0]?.body.error).toMatchObject({
      code: -32602,
      data: {
        code: "delegation_not_found",
        category: "UPSTREAM",
        recovery: expect.stringContaining("list_tasks"),
      },
    });
  }
  expect((await ask("tasks/get", { taskId: "nonsense" })).body.error.code).toBe(-32602);
});

test("the time of the answer is the same, too", async () => {
  const { url, start, ask } = await setup();
  const { taskId } = await start({ task: "x".repeat(2_000) });
  const { token } = await as(url, "caller:bob");
  const none = `${taskId.slice(0, -4)}0000`;
  const took = new Map<string, number[]>([
    [taskId, []],
    [none, []],
  ]);
  // Alternately, so that load affects both.
  for (let round = 0; round < 80; round += 1) {
    for (const [id, times] of took) {
      const from = performance.now();
      await ask("tasks/get", { taskId: id }, token);
      times.push(performance.now() - from);
    }
  }
  const median = (times: number[]) => times.sort((x, y) => x - y)[times.length >> 1] ?? 0;
  const [foreign = 0, unknown = 0] = [...took.values()].map(median);
  expect(Math.abs(foreign - unknown)).toBeLessThan(Math.max(1.5, 0.5 * Math.min(foreign, unknown)));
}, 120_000);

test("a client that does not declare tasks gets none, and cannot use their methods", async () => {
  const { url, alice, start, scout, lease } = await setup();
  const { taskId } = await start();
  await scout.reply(await lease());
  const plain = await callModern(url, alice.token, "delegate_task", {
    agent: "scout",
    task: "do it",
    wait_seconds: 0,
  });
  expect(plain.body.result).toMatchObject({
    resultType: "complete",
    structuredContent: { state: "submitted" },
  });
  const required = {
    code: -32021,
    data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } },
  };
  for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
    const params = { taskId, ...(method === "tasks/update" && { inputResponses: {} }) };
    expect((await requestModern(url, alice.token, method, params)).body.error).toMatchObject(required);
  }
  const listen = { notifications: { taskIds: [taskId] } };
  expect((await requestModern(url, alice.token, "subscriptions/listen", listen)).body.error).toMatchObject(
    required,
  );
  for (const method of ["tasks/list", "tasks/result"]) {
    expect((await requestModern(url, alice.token, method, { taskId }, WITH_TASKS)).body.error.code).toBe(
      -32601,
    );
  }
});
