/** Requests in every spelling of ProtoJSON: snake_case, enum numbers, integers as strings. Responses are camelCase. */
import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { PARAMS } from "../../../src/doors/a2a/params.ts";
import { toSnake } from "../../../src/doors/a2a/protojson.ts";
import { PARAMS_V03 } from "../../../src/doors/a2a/v03/params.ts";
import { jsonMessage, leaseOf, startA2aBroker } from "./support.ts";

// Untyped: each test states what it expects on the wire.
type Json = ReturnType<typeof JSON.parse>;

/** A member whose content is the client's own. */
const FREE = new Set(["metadata", "data"]);

/** Renames every member, except for what is free-form. */
function snaked(value: Json): Json {
  if (Array.isArray(value)) return value.map(snaked);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [toSnake(name), FREE.has(name) ? one : snaked(one)]),
  );
}

const OWN = { myKey: { innerKey: 1 }, my_key: { inner_key: [{ deep_key: 2, deepKey: 3 }] } };
const config = {
  id: "mine",
  taskId: "t",
  url: "https://example.com/hook",
  token: "secret",
  authentication: { scheme: "Bearer", credentials: "x" },
};
const message = {
  messageId: "m",
  contextId: "c",
  taskId: "t",
  role: "ROLE_USER",
  parts: [
    { text: "x", mediaType: "text/plain", filename: "a", metadata: OWN },
    { data: OWN, mediaType: "application/json" },
  ],
  metadata: OWN,
  extensions: ["urn:x"],
  referenceTaskIds: ["r"],
};
const send = {
  tenant: "",
  message,
  configuration: {
    acceptedOutputModes: ["text/plain"],
    historyLength: 2,
    returnImmediately: true,
    taskPushNotificationConfig: config,
  },
  metadata: OWN,
};

/** All members that 1.0 has, by operation. */
const ALL: Readonly<Record<keyof typeof PARAMS, Json>> = {
  SendMessage: send,
  SendStreamingMessage: send,
  GetTask: { tenant: "", id: "t", historyLength: 1 },
  ListTasks: {
    tenant: "",
    contextId: "c",
    status: "TASK_STATE_WORKING",
    pageSize: 5,
    pageToken: "p",
    historyLength: 0,
    statusTimestampAfter: "2026-01-01T00:00:00Z",
    includeArtifacts: true,
  },
  CancelTask: { tenant: "", id: "t", metadata: OWN },
  SubscribeToTask: { tenant: "", id: "t" },
  CreateTaskPushNotificationConfig: { tenant: "", ...config },
  GetTaskPushNotificationConfig: { tenant: "", taskId: "t", id: "mine" },
  ListTaskPushNotificationConfigs: { tenant: "", taskId: "t", pageSize: 1, pageToken: "p" },
  DeleteTaskPushNotificationConfig: { tenant: "", taskId: "t", id: "mine" },
  GetExtendedAgentCard: { tenant: "" },
};
const messageV03 = {
  kind: "message",
  messageId: "m",
  contextId: "c",
  taskId: "t",
  role: "user",
  parts: [
    { kind: "file", file: { uri: "https://example.com", mimeType: "image/png", name: "a" }, metadata: OWN },
    { kind: "data", data: OWN },
  ],
  metadata: OWN,
  referenceTaskIds: ["r"],
};
const sendV03 = {
  message: messageV03,
  configuration: {
    acceptedOutputModes: ["text/plain"],
    blocking: false,
    historyLength: 2,
    pushNotificationConfig: { id: "mine", url: "https://example.com/hook" },
  },
  metadata: OWN,
};
const ALL_V03: Readonly<Record<string, Json>> = {
  "message/send": sendV03,
  "tasks/get": { id: "t", historyLength: 1, metadata: OWN },
  "tasks/pushNotificationConfig/set": { taskId: "t", pushNotificationConfig: { url: "https://example.com" } },
  "tasks/pushNotificationConfig/get": { id: "t", pushNotificationConfigId: "mine" },
  "tasks/pushNotificationConfig/delete": { id: "t", pushNotificationConfigId: "mine" },
};

const SCHEMAS: readonly (readonly [string, z.ZodType, Json])[] = [
  ...Object.entries(PARAMS).map(
    ([name, schema]) => [name, schema, ALL[name as keyof typeof PARAMS]] as const,
  ),
  ...Object.entries(PARAMS_V03).flatMap(([name, schema]) =>
    ALL_V03[name] === undefined ? [] : [[`0.3 ${name}`, schema, ALL_V03[name]] as const],
  ),
];

/** Every object whose members a schema names, with its path. */
function* objectsIn(
  value: Json,
  path: readonly string[] = [],
): Generator<readonly [readonly string[], Json]> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield [path, value];
  for (const [name, one] of Object.entries(value))
    if (!FREE.has(name)) yield* objectsIn(one, [...path, name]);
}

describe.each(SCHEMAS)("%s", (_name, schema, params) => {
  test("snake_case is read like camelCase, and free-form content passes unchanged", () => {
    const expected = schema.parse(params);
    expect(expected).toEqual(params);
    expect(schema.parse(snaked(params))).toEqual(expected);
  });

  test("both spellings of one member are refused, at any depth; null counts as absent", () => {
    for (const [path] of objectsIn(params)) {
      const copy = structuredClone(params);
      const object = path.reduce((inner, name) => inner[name], copy);
      for (const [camel, value] of Object.entries(object)) {
        const snake = toSnake(camel);
        if (snake === camel) continue;
        object[snake] = value;
        expect(schema.safeParse(copy).error?.issues[0]).toMatchObject({
          path: [...path.map((name) => (/^\d+$/.test(name) ? Number(name) : name)), snake],
          message: `is also sent as ${camel}; send one of them`,
        });
        object[snake] = null;
        expect(schema.parse(copy)).toEqual(params);
        delete object[snake];
      }
    }
  });
});

test("enums are read by number, integers as strings; other strings, fractions and numbers are refused", () => {
  const list = (params: Json) => PARAMS.ListTasks.safeParse(params).data;
  expect(list({ status: 2, pageSize: "5", historyLength: "1e1" })).toEqual({
    status: "TASK_STATE_WORKING",
    pageSize: 5,
    historyLength: 10,
  });
  expect(list({ status: 0, pageSize: "5.0" })).toEqual({ status: "TASK_STATE_UNSPECIFIED", pageSize: 5 });
  for (const params of [
    { status: 9 },
    { status: -1 },
    { status: "2" },
    { pageSize: "0x5" },
    { pageSize: " 5" },
    { pageSize: "5.5" },
    { pageSize: "101" },
    { historyLength: "-1" },
    { historyLength: "2147483648" },
  ]) {
    expect(list(params), JSON.stringify(params)).toBeUndefined();
  }
  for (const [role, name] of [
    [1, "ROLE_USER"],
    [2, "ROLE_AGENT"],
    [0, undefined],
    [3, undefined],
  ]) {
    expect(PARAMS.SendMessage.safeParse({ message: { ...message, role } }).data?.message.role).toBe(name);
  }
});

const FREE_FORM = { someKey: 1, some_key: { other_key: 2, otherKey: 3 } };
const snakeMessage = (more: Json = {}) => ({
  message_id: "m-1",
  role: 1,
  parts: [
    { text: "work", media_type: "text/plain", metadata: FREE_FORM },
    { data: FREE_FORM, media_type: "application/json" },
  ],
  metadata: FREE_FORM,
  reference_task_ids: ["other"],
  ...more,
});

test.each(["JSON-RPC", "HTTP+JSON"])(
  "%s 1.0: a whole exchange in snake_case is answered in camelCase",
  async (binding) => {
    const { raw, agent } = await startA2aBroker({ callbackAllow: ["127.0.0.1"] });
    const isRpc = binding === "JSON-RPC";
    const [hook, isStill] = ["http://127.0.0.1:9/hook", { return_immediately: true, history_length: "1" }];
    const call = async (method: string, path: string, body?: Json, verb = "POST") =>
      isRpc ? (await raw.rpc(method, body ?? {})).body.result : (await raw.rest(verb, path, body)).body;
    const { task } = await call("SendMessage", "/message:send", {
      message: snakeMessage({ context_id: "ours" }),
      configuration: { ...isStill, task_push_notification_config: { id: "mine", url: hook } },
      metadata: FREE_FORM,
    });
    const { id } = task;
    const sent = {
      messageId: "m-1",
      role: "ROLE_USER",
      parts: [
        { text: "work", mediaType: "text/plain", metadata: FREE_FORM },
        { data: FREE_FORM, mediaType: "application/json" },
      ],
      contextId: "ours",
      referenceTaskIds: ["other"],
    };
    expect(task.history).toEqual([{ ...sent, taskId: id, metadata: FREE_FORM }]);
    expect(task.metadata).toMatchObject(FREE_FORM);
    const { body } = await leaseOf(agent);
    const { lease_id, request } = body;
    expect(request.params.message).toEqual({
      ...sent,
      metadata: { ...FREE_FORM, delegation_id: id, lease_id },
    });
    const followed = await call("SendMessage", "/message:send", {
      message: snakeMessage({ task_id: id, context_id: "ours" }),
      configuration: isStill,
    });
    expect(followed.task.id).toBe(id);

    const made = await call("CreateTaskPushNotificationConfig", `/tasks/${id}/pushNotificationConfigs`, {
      ...(isRpc && { task_id: id }),
      id: "second",
      url: hook,
    });
    expect(made).toEqual({ taskId: id, id: "second", url: hook });
    const path = `/tasks/${id}/pushNotificationConfigs`;
    const listed = await call(
      "ListTaskPushNotificationConfigs",
      `${path}?page_size=1`,
      isRpc ? { task_id: id, page_size: "1" } : undefined,
      "GET",
    );
    expect(listed.configs).toHaveLength(1);
    const rest = { task_id: id, page_token: listed.nextPageToken };
    const more = await call(
      "ListTaskPushNotificationConfigs",
      `${path}?page_token=${listed.nextPageToken}`,
      isRpc ? rest : undefined,
      "GET",
    );
    expect(more.configs).toHaveLength(1);

    const query = {
      context_id: "ours",
      status: 2,
      page_size: "1",
      history_length: 0,
      include_artifacts: true,
    };
    const text = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
    const page = await call("ListTasks", `/tasks?${text}`, isRpc ? query : undefined, "GET");
    expect(page).toMatchObject({ tasks: [{ id, artifacts: [] }], pageSize: 1 });
    expect(page.tasks[0].history).toBeUndefined();
    const got = await call(
      "GetTask",
      `/tasks/${id}?history_length=1`,
      isRpc ? { id, history_length: 1 } : undefined,
      "GET",
    );
    expect(got.history).toHaveLength(1);
  },
);

test("both spellings in one request are an error that names them", async () => {
  const { raw } = await startA2aBroker();
  const twice = { message: { ...jsonMessage("x"), message_id: "other" } };
  const violation = {
    field: "message.message_id",
    description: "is also sent as messageId; send one of them",
  };
  const rpc = await raw.rpc("SendMessage", twice);
  expect([rpc.body.error.code, rpc.body.error.data[1].fieldViolations]).toEqual([-32602, [violation]]);
  const rest = await raw.rest("POST", "/message:send", twice);
  expect([rest.status, rest.body.error.details[1].fieldViolations]).toEqual([400, [violation]]);
  const query = await raw.rest("GET", "/tasks?page_size=1&pageSize=2");
  expect([query.status, query.body.error.details[1].fieldViolations[0].field]).toEqual([400, "page_size"]);
  const config = { taskId: "t", task_id: "u", url: "https://example.com" };
  const created = await raw.rest("POST", "/tasks/t/pushNotificationConfigs", config);
  expect([created.status, created.body.error.details[1].fieldViolations[0].field]).toEqual([400, "task_id"]);
});

test("HTTP+JSON 0.3 reads the protobuf's snake_case and numbers", async () => {
  const { raw, agent } = await startA2aBroker({ callbackAllow: ["127.0.0.1"] });
  const old = { "a2a-version": "0.3" };
  const hook = "http://127.0.0.1:9/hook";
  const request = {
    message_id: "m",
    context_id: "ours",
    role: 1,
    content: [
      { text: "x", metadata: FREE_FORM },
      { file: { file_with_uri: "https://example.com/a", mime_type: "image/png", name: "a" } },
      { data: { data: FREE_FORM } },
    ],
    metadata: FREE_FORM,
  };
  const configuration = { push_notification: { id: "mine", url: hook }, history_length: 0, blocking: false };
  const { body } = await raw.rest("POST", "/v1/message:send", { request, configuration }, old);
  const { id, contextId } = body.task;
  expect(contextId).toBe("ours");
  const { body: leased } = await leaseOf(agent);
  expect(leased.request.params.message).toMatchObject({
    messageId: "m",
    parts: [
      { text: "x", metadata: FREE_FORM },
      { url: "https://example.com/a", mediaType: "image/png", filename: "a" },
      { data: FREE_FORM },
    ],
    metadata: FREE_FORM,
  });
  const { body: got } = await raw.rest("GET", `/v1/tasks/${id}?history_length=0`, undefined, old);
  expect(got.history ?? []).toEqual([]);
  const made = await raw.rest(
    "POST",
    `/v1/tasks/${id}/pushNotificationConfigs`,
    { push_notification_config: { id: "second", url: hook } },
    old,
  );
  expect(made.body.pushNotificationConfig).toMatchObject({ id: "second", url: hook });
  const { body: configs } = await raw.rest("GET", `/v1/tasks/${id}/pushNotificationConfigs`, undefined, old);
  expect(configs.configs).toHaveLength(2);
  const named = { name: `tasks/${id}/pushNotificationConfigs/a`, pushNotificationConfig: { url: hook } };
  for (const [body, expected] of [
    [{ id: "a", url: hook }, "a"],
    [{ pushNotificationConfig: { id: "b", url: hook } }, "b"],
    [{ config: { pushNotificationConfig: { id: "c", url: hook } } }, "c"],
    [{ parent: `tasks/${id}`, configId: "d", config: named }, "d"],
    [{ parent: `tasks/${id}`, config_id: "e", config: { push_notification_config: { url: hook } } }, "e"],
    [{ configId: "no", config: { pushNotificationConfig: { id: "f", url: hook } } }, "f"],
    [{ config: { url: hook, id: "g" } }, "g"],
    [{ configId: "h", config: { pushNotificationConfig: { id: "", url: hook } } }, "h"],
  ] as const) {
    const answer = await raw.rest("POST", `/v1/tasks/${id}/pushNotificationConfigs`, body, old);
    expect([answer.status, answer.body.pushNotificationConfig]).toMatchObject([
      201,
      { id: expected, url: hook },
    ]);
  }
  const without = { config: { config: { pushNotificationConfig: { url: hook } } } };
  const lost = await raw.rest("POST", `/v1/tasks/${id}/pushNotificationConfigs`, without, old);
  expect([lost.status, lost.body.data[1].fieldViolations[0].field]).toEqual([
    400,
    "pushNotificationConfig.url",
  ]);
  const twice = { request: { ...request, messageId: "n" } };
  const refused = await raw.rest("POST", "/v1/message:send", twice, old);
  expect([refused.status, refused.body.code]).toEqual([400, -32602]);
  expect(refused.body.data[1].fieldViolations[0].field).toBe("request.message_id");
});
