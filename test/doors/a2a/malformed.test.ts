/** Invalid requests on each binding: the specified error with details, and no internals. */
import { describe, expect, test } from "vitest";
import { strictFetch } from "../../support/a2a-schema/check.ts";
import { OPERATOR, request } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { jsonMessage, leaseOf, rawCalls, startA2aBroker } from "./support.ts";

const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";
const NOBODY = `dlg_0_${"0".repeat(26)}`;

/** Invalid messages, and the member that the error names. */
const MESSAGES: readonly [string, unknown, string][] = [
  ["no message", undefined, "message"],
  ["no messageId", { role: "ROLE_USER", parts: [{ text: "x" }] }, "message.messageId"],
  ["an empty messageId", { messageId: "", role: "ROLE_USER", parts: [{ text: "x" }] }, "message.messageId"],
  ["the role of 0.3", { messageId: "m", role: "user", parts: [{ text: "x" }] }, "message.role"],
  ["no parts", { messageId: "m", role: "ROLE_USER" }, "message.parts"],
  ["empty parts", { messageId: "m", role: "ROLE_USER", parts: [] }, "message.parts"],
  ["an empty part", { messageId: "m", role: "ROLE_USER", parts: [{}] }, "message.parts.0"],
  [
    "two contents",
    { messageId: "m", role: "ROLE_USER", parts: [{ text: "x", url: "y" }] },
    "message.parts.0",
  ],
  ["bad base64", { messageId: "m", role: "ROLE_USER", parts: [{ raw: "%%" }] }, "message.parts.0.raw"],
  ["a number as text", { messageId: "m", role: "ROLE_USER", parts: [{ text: 1 }] }, "message.parts.0.text"],
];

describe("JSON-RPC", () => {
  test("§9.5 invalid JSON is -32700, an invalid request -32600", async () => {
    const { raw } = await startA2aBroker();
    const codeOf = async (body: unknown) => {
      const answer = await raw.envelope(body);
      expect([answer.status, answer.body.jsonrpc]).toEqual([200, "2.0"]);
      expect(answer.body.error.data[0]).toMatchObject({
        "@type": ERROR_INFO,
        reason: expect.stringMatching(/^[A-Z_]+$/),
        metadata: { requestId: expect.stringMatching(/^req_/), recovery: expect.stringMatching(/^\w.+\.$/) },
      });
      return [answer.body.error.code, answer.body.id];
    };
    expect(await codeOf("{")).toEqual([-32700, null]);
    expect(await codeOf(" ")).toEqual([-32700, null]);
    for (const body of [
      [],
      [{ jsonrpc: "2.0", id: 1, method: "GetTask", params: { id: NOBODY } }],
      { id: 1, method: "GetTask" },
      { jsonrpc: "1.0", id: 1, method: "GetTask" },
      { jsonrpc: "2.0", id: 1 },
      { jsonrpc: "2.0", id: 1, method: 5 },
    ]) {
      expect((await codeOf(body))[0], JSON.stringify(body)).toBe(-32600);
    }
    expect(await codeOf({ jsonrpc: "2.0", id: { a: 1 }, method: "GetTask" })).toEqual([-32600, null]);
    expect(await codeOf({ jsonrpc: "2.0", id: "mine", method: "NoSuchMethod" })).toEqual([-32601, "mine"]);
    expect(await codeOf({ jsonrpc: "2.0", id: 3, method: "message/send", params: {} })).toEqual([-32601, 3]);
    expect(await codeOf({ jsonrpc: "2.0", id: 4, method: "GetTask" })).toEqual([-32602, 4]);
    expect(await codeOf({ jsonrpc: "2.0", id: 5, method: "GetTask", params: [NOBODY] })).toEqual([-32602, 5]);
  });

  test.each(MESSAGES)("§9.5 %s is -32602, and named", async (_name, message, field) => {
    const { raw } = await startA2aBroker();
    for (const method of ["SendMessage", "SendStreamingMessage"]) {
      const { status, body } = await raw.rpc(method, { message });
      expect([status, body.error.code]).toEqual([200, -32602]);
      const [info, violations] = body.error.data;
      expect(info).toMatchObject({
        "@type": ERROR_INFO,
        reason: "INVALID_PARAMS",
        domain: "a2a-protocol.org",
      });
      expect(violations.fieldViolations[0].field).toBe(field);
      // A2A has no details.issues.
      expect(info.metadata.recovery).toBe("Correct the fields named in fieldViolations.");
    }
  });

  test("values that the SDK's codecs would misread are refused", async () => {
    const { raw } = await startA2aBroker();
    const refused: [string, unknown][] = [
      ["SendMessage", { message: jsonMessage("x"), configuration: { returnImmediately: "false" } }],
      ["SendMessage", { message: jsonMessage("x"), configuration: { historyLength: -1 } }],
      ["SendMessage", { message: jsonMessage("x"), metadata: "none" }],
      ["GetTask", { id: NOBODY, historyLength: "two" }],
      ["GetTask", { id: NOBODY, historyLength: "1.5" }],
      ["GetTask", { id: NOBODY, historyLength: "" }],
      ["GetTask", { id: NOBODY, historyLength: true }],
      ["GetTask", { id: "" }],
      ["ListTasks", { status: "WORKING" }],
      ["ListTasks", { includeArtifacts: "yes" }],
      ["ListTasks", { statusTimestampAfter: "yesterday" }],
      ["ListTasks", { pageToken: "no token" }],
    ];
    for (const [method, params] of refused) {
      const { body } = await raw.rpc(method, params);
      expect(body.error?.code, JSON.stringify(params)).toBe(-32602);
    }
  });

  test("a member without a name in the params is refused, in both versions", async () => {
    const { raw } = await startA2aBroker();
    const cases = [
      ["1.0", "GetTask", { id: NOBODY, "": {} }],
      ["1.0", "SendMessage", { message: jsonMessage("x"), "": 1 }],
      ["1.0", "GetExtendedAgentCard", { "": null }],
      ["0.3", "tasks/get", { id: " ", "": {} }],
      ["0.3", "agent/getAuthenticatedExtendedCard", { "": {} }],
    ] as const;
    for (const [version, method, params] of cases) {
      const { status, body } = await raw.rpc(method, params, { "a2a-version": version });
      expect([method, status, body.error?.code]).toEqual([method, 200, -32602]);
      expect(body.error.data[1].fieldViolations).toEqual([
        { field: "params", description: "remove the member with the empty name" },
      ]);
    }
  });

  test("null data is preserved in both directions", async () => {
    const { raw, agent } = await startA2aBroker();
    const sent = raw.rpc("SendMessage", {
      message: jsonMessage("", { parts: [{ data: null }, { text: "x" }] }),
    });
    const { lease, body } = await leaseOf(agent);
    expect(body.request.params.message.parts).toEqual([{ data: null }, { text: "x" }]);
    await agent.reply(lease, { artifacts: [{ artifactId: "a", parts: [{ data: null }] }] });
    const { task } = (await sent).body.result;
    expect(task.artifacts).toEqual([{ artifactId: "a", parts: [{ data: null }] }]);
    expect(task.history[0].parts).toEqual([{ data: null }, { text: "x" }]);
  });

  test("a tenant in the params is ignored", async () => {
    const { raw } = await startA2aBroker();
    const { body } = await raw.rpc("ListTasks", { tenant: "scout" });
    expect(body.result.tasks).toEqual([]);
  });

  test("an unknown agent has no tasks and accepts none", async () => {
    const { url, caller } = await startA2aBroker();
    const { rpc } = rawCalls(url, caller.token, "nobody");
    for (const [method, params] of [
      ["SendMessage", { message: jsonMessage("x") }],
      ["ListTasks", {}],
      ["GetTask", { id: NOBODY }],
      ["GetExtendedAgentCard", {}],
    ] as const) {
      const { body } = await rpc(method, params);
      expect([body.error.code, body.error.data[0].reason], method).toEqual([-32001, "TASK_NOT_FOUND"]);
    }
  });

  test("errors with an HTTP status of their own have it, with an envelope", async () => {
    const { url, agent } = await startA2aBroker({ maxBodyBytes: 2_000 });
    const { body } = await request(url, "POST", "/v1/tokens", { body: { principal: "viewer:wall" } });
    const viewer = rawCalls(url, body.token);
    const forbidden = await viewer.rpc("SendMessage", { message: jsonMessage("x") });
    expect([forbidden.status, forbidden.body.error.code]).toEqual([403, -32000]);
    const large = await viewer.rpc("SendMessage", { message: jsonMessage("x".repeat(3_000)) });
    expect([large.status, large.body.error.code]).toEqual([413, -32600]);
    await agent.agent("scout", { limits: { max_waiting: 1 } });
    const { rpc } = rawCalls(url, OPERATOR);
    const params = () => ({ message: jsonMessage("x"), configuration: { returnImmediately: true } });
    await rpc("SendMessage", params());
    const full = await rpc("SendMessage", params());
    expect([full.status, full.body.error.data[0].reason, full.headers.get("retry-after")]).toEqual([
      429,
      "QUEUE_FULL",
      "5",
    ]);
    const typed = await viewer.envelope("x", { "content-type": "text/plain" });
    expect([typed.status, typed.body.error.code]).toEqual([415, -32005]);
  });

  test("a stream beyond the quota is refused before anything is accepted", async () => {
    const { url, caller } = await startA2aBroker({ quotas: { streams: 0, polls: 0 } });
    const { rpc } = rawCalls(url, caller.token);
    for (const method of ["SendStreamingMessage", "SendMessage"]) {
      const { status, body } = await rpc(method, { message: jsonMessage("x") });
      expect([status, body.error.data[0].reason]).toEqual([429, "QUOTA_EXCEEDED"]);
    }
    expect((await rpc("ListTasks", {})).body.result.tasks).toEqual([]);
  });
});

test("concurrent streams beyond the quota are refused before anything is accepted", async () => {
  const { url, gateway, caller, raw } = await startA2aBroker({ quotas: { streams: 2 } });
  const gone = new AbortController();
  const ask = () =>
    strictFetch(`${url}/a2a/scout/rpc`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${caller.token}`,
        "content-type": "application/json",
        "a2a-version": "1.0",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "SendStreamingMessage",
        params: { message: jsonMessage("x") },
      }),
      signal: gone.signal,
    });
  // On open connections; otherwise the requests would arrive one after another.
  await Promise.all(Array.from({ length: 12 }, () => raw.rpc("ListTasks", {})));
  const answers = await Promise.all(Array.from({ length: 12 }, ask));
  const { tasks } = (await raw.rpc("ListTasks", {})).body.result;
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(10);
  expect(tasks).toHaveLength(2);
  for (const { status, body } of answers) {
    if (status !== 200 || !body) continue;
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let read = "";
    while (!read.includes("data:")) read += (await reader.read()).value ?? "data: nothing";
    expect(read).toContain("TASK_STATE_SUBMITTED");
  }
  gone.abort();
  const alice = { text: "caller:alice" };
  await until(() => gateway.broker.quotas.inUse(alice, "streams") === 0);
  const refused = await raw.rpc("SendStreamingMessage", {
    message: jsonMessage("x", { taskId: NOBODY }),
  });
  expect(refused.body.error.code).toBe(-32001);
  await until(() => gateway.broker.quotas.inUse(alice, "streams") === 0);
});

describe("HTTP+JSON", () => {
  test.each(MESSAGES)("§11.6 %s is 400, and named", async (_name, message, field) => {
    const { raw } = await startA2aBroker();
    for (const path of ["/message:send", "/message:stream"]) {
      const { status, body } = await raw.rest("POST", path, { message });
      expect(status).toBe(400);
      expect(body.error).toMatchObject({ code: 400, status: "INVALID_ARGUMENT" });
      expect(body.error.details[0]).toMatchObject({ "@type": ERROR_INFO, reason: "INVALID_PARAMS" });
      expect(body.error.details[1].fieldViolations[0].field).toBe(field);
    }
  });

  test("§5.4 each error has its status and its ErrorInfo", async () => {
    const { url, raw, agent, begin } = await startA2aBroker();
    const { id } = await begin();
    await agent.reply((await leaseOf(agent)).lease);
    const hook = { url: "http://127.0.0.1/hook" };
    const cases: [string, string, unknown, number, string, string][] = [
      ["GET", `/tasks/${NOBODY}`, undefined, 404, "NOT_FOUND", "TASK_NOT_FOUND"],
      ["GET", "/tasks/no-id", undefined, 404, "NOT_FOUND", "TASK_NOT_FOUND"],
      ["POST", `/tasks/${id}:cancel`, undefined, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"],
      ["GET", `/tasks/${id}:subscribe`, undefined, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"],
      ["POST", `/tasks/${id}:subscribe`, undefined, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"],
      ["POST", `/tasks/${id}/pushNotificationConfigs`, hook, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"],
      ["GET", `/tasks/${id}/pushNotificationConfigs/x`, undefined, 404, "NOT_FOUND", "TASK_NOT_FOUND"],
      ["GET", "/tasks?pageSize=x", undefined, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"],
      ["GET", "/tasks?pageSize=101", undefined, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"],
      ["GET", "/tasks?includeArtifacts=perhaps", undefined, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"],
    ];
    for (const [method, path, body, http, status, reason] of cases) {
      const answer = await raw.rest(method, path, body);
      expect([path, answer.status, answer.body.error.status, answer.body.error.details[0].reason]).toEqual([
        path,
        http,
        status,
        reason,
      ]);
      expect(answer.body.error.details[0].domain).toBe("a2a-protocol.org");
    }
    const typed = await raw.rest("POST", "/message:send", "x", { "content-type": "text/plain" });
    expect([typed.status, typed.body.error.details[0].reason]).toEqual([415, "CONTENT_TYPE_NOT_SUPPORTED"]);
    const nobody = await request(url, "GET", "/a2a/nobody/rest/tasks", { headers: { "a2a-version": "1.0" } });
    expect([nobody.status, nobody.body.error.details[0].reason]).toEqual([404, "TASK_NOT_FOUND"]);
  });

  test("an unknown path is 404 with a hint, an unknown method 405", async () => {
    const { raw } = await startA2aBroker();
    for (const [method, path, expected, reason] of [
      ["GET", "/message:send", 405, "METHOD_NOT_ALLOWED"],
      ["POST", "/tasks", 405, "METHOD_NOT_ALLOWED"],
      ["GET", "/v1/tasks/x", 404, "NOT_FOUND"],
      ["GET", `/tasks/${NOBODY}:explode`, 404, "NOT_FOUND"],
      ["GET", "/tasks/%ZZ", 404, "NOT_FOUND"],
      ["GET", "/scout/tasks", 404, "NOT_FOUND"],
    ] as const) {
      const { status, body } = await raw.rest(method, path, method === "POST" ? {} : undefined);
      expect([path, status, body.error.details[0].reason]).toEqual([path, expected, reason]);
    }
    const unversioned = await raw.rest("GET", "/tasks", undefined, { "a2a-version": "" });
    expect([unversioned.status, JSON.stringify(unversioned.body)]).toEqual([
      404,
      expect.stringContaining("A2A-Version: 1.0"),
    ]);
  });
});

describe("0.3", () => {
  const message = (more: Record<string, unknown> = {}) => ({
    kind: "message",
    messageId: "m",
    role: "user",
    parts: [{ kind: "text", text: "x" }],
    ...more,
  });
  const BAD: readonly [string, unknown][] = [
    ["no message", undefined],
    ["the role of 1.0", message({ role: "ROLE_USER" })],
    ["no parts", message({ parts: [] })],
    ["a part without its content", message({ parts: [{ kind: "text" }] })],
    ["a file without a file", message({ parts: [{ kind: "file" }] })],
    ["a file with bad bytes", message({ parts: [{ kind: "file", file: { bytes: "%%" } }] })],
    ["a part of no kind", message({ parts: [{ text: "x" }] })],
    ["data that is no object", message({ parts: [{ kind: "data", data: 1 }] })],
  ];

  test.each(BAD)("JSON-RPC: %s is -32602", async (_name, sent) => {
    const { raw } = await startA2aBroker();
    const { body } = await raw.rpc("message/send", { message: sent }, { "a2a-version": "0.3" });
    expect(body.error).toMatchObject({ code: -32602, data: [{ "@type": ERROR_INFO }, {}] });
  });

  test("HTTP+JSON: the codes of JSON-RPC, with their status", async () => {
    const { url, raw } = await startA2aBroker();
    const old = { "a2a-version": "0.3" };
    const none = await raw.rest("GET", `/v1/tasks/${NOBODY}`, undefined, old);
    expect([none.status, none.body.code]).toEqual([404, -32001]);
    const bad = await raw.rest(
      "POST",
      "/v1/message:send",
      { message: { messageId: "m", role: "ROLE_USER" } },
      old,
    );
    expect([bad.status, bad.body.code]).toEqual([400, -32602]);
    for (const version of [old, undefined]) {
      const nobody = await request(url, "GET", `/a2a/scout/rest/v1/tasks/${NOBODY}`, {
        token: null,
        ...(version && { headers: version }),
      });
      expect([nobody.status, nobody.body.code]).toEqual([401, -32000]);
      expect(nobody.body.data[0]).toMatchObject({ "@type": ERROR_INFO, reason: "UNAUTHENTICATED" });
    }
    const list = await raw.rest("GET", "/v1/tasks", undefined, old);
    expect(list.status).toBe(404);
  });
});

test("an unexpected failure reveals nothing, on any binding", async () => {
  const { gateway, raw } = await startA2aBroker();
  gateway.broker.agents.get = () => Promise.reject(new Error("a secret of the inside"));
  const answers = [
    await raw.rpc("SendMessage", { message: jsonMessage("x") }),
    await raw.rpc("SendStreamingMessage", { message: jsonMessage("x") }),
    await raw.rest("GET", "/tasks"),
    await raw.rpc(
      "message/send",
      { message: { messageId: "m", role: "user", parts: [{ kind: "text", text: "x" }] } },
      {
        "a2a-version": "0.3",
      },
    ),
  ];
  for (const { status, body } of answers) {
    expect(status).toBe(500);
    expect(JSON.stringify(body)).not.toMatch(/secret/);
    expect(JSON.stringify(body)).toMatch(/req_/);
  }
});

test("a stopping gateway ends its streams", async () => {
  const { gateway, raw, agent } = await startA2aBroker();
  const streaming = raw.rpc("SendStreamingMessage", { message: jsonMessage("x") }).catch(() => "ended");
  await leaseOf(agent);
  await gateway.close();
  expect(await streaming).toBe("ended");
});
