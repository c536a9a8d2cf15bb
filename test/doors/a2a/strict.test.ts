/** What strict clients find: closed schemas, the broker's metadata, media types, extensions. */
import * as sdk from "@a2a-js/sdk";
import { describe, expect, test } from "vitest";
import { checkCount, requireValid } from "../../support/a2a-schema/check.ts";
import { isTable } from "../../support/a2a-schema/closed.ts";
import { V1 } from "../../support/a2a-schema/v1.ts";
import { as, client, OPERATOR, request, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { jsonMessage, leaseOf, rawCalls, startA2aBroker } from "./support.ts";

// Untyped: each test states what it expects on the wire.
type Json = ReturnType<typeof JSON.parse>;

/** The names of all members that a codec of the SDK reads. */
function namesRead(codec: { fromJSON: (object: Json) => unknown }): string[] {
  const read = new Set<string>();
  codec.fromJSON(new Proxy({}, { get: (_, name) => void read.add(String(name)) }));
  return [...read].filter((name) => !name.includes("_"));
}

const isCodec = (value: unknown): value is { fromJSON: (object: Json) => unknown } =>
  typeof value === "object" && value !== null && "fromJSON" in value && typeof value.fromJSON === "function";

/** Of their members, the broker sends only one. */
const PARTIAL = ["SecurityScheme"];

describe("the closed schemas", () => {
  const exported: Readonly<Record<string, unknown>> = sdk;
  const tables = Object.entries(V1).flatMap(([name, one]) =>
    isTable(one) && isCodec(exported[name]) ? [[name, one.fields, exported[name]] as const] : [],
  );

  test.each(tables)("%s has exactly the members that the SDK's codec reads", (name, fields, codec) => {
    const names = namesRead(codec);
    if (PARTIAL.includes(name)) expect(names).toEqual(expect.arrayContaining(Object.keys(fields)));
    else expect(Object.keys(fields).sort()).toEqual(names.sort());
  });

  test("each message of the protocol is compared", () => {
    expect(tables.length).toBeGreaterThan(20);
  });

  test("a surplus, missing or misspelled member is refused anywhere in a card, a task, an event or an error", async () => {
    const { raw, agent, url } = await startA2aBroker();
    const sent = raw.rpc("SendMessage", { message: jsonMessage("work") });
    await agent.reply((await leaseOf(agent)).lease, { text: "done" });
    const { task } = (await sent).body.result;
    const card = await request(url, "GET", "/a2a/scout/cards/1.0.json", { token: null });
    const old = await request(url, "GET", "/a2a/scout/cards/0.3.json", { token: null });
    const refused = await raw.rpc("SendMessage", { message: {} });
    const restRefused = await raw.rest("POST", "/message:send", { message: {} });
    const { id, contextId, status, artifacts } = task;
    const samples: [Parameters<typeof requireValid>[0], string, Json][] = [
      ["1.0", "AgentCard", card.body],
      ["0.3", "Card", old.body],
      ["1.0", "Task", task],
      ["1.0", "StreamResponse", { statusUpdate: { taskId: id, contextId, status } }],
      ["1.0", "StreamResponse", { artifactUpdate: { taskId: id, contextId, artifact: artifacts[0] } }],
      ["1.0", "RpcError", refused.body.error],
      ["1.0", "HttpError", restRefused.body],
    ];
    for (const [version, type, value] of samples) {
      requireValid(version, type, value);
      let spoiled = 0;
      for (const [object, name] of closedObjectsIn(value)) {
        const refusedWith = (change: () => void, undo: () => void) => {
          change();
          expect(() => requireValid(version, type, value), `${type} ${name}`).toThrow("not a ");
          undo();
          spoiled += 1;
        };
        refusedWith(
          () => Object.assign(object, { surplus: 1 }),
          () => delete object.surplus,
        );
        for (const [member, kept] of Object.entries(object)) {
          if (["metadata", "params"].includes(member)) continue;
          refusedWith(
            () => Object.assign(object, { [member]: { wrong: "type" } }),
            () => Object.assign(object, { [member]: kept }),
          );
        }
      }
      requireValid(version, type, value);
      expect(spoiled).toBeGreaterThan(4);
    }
    for (const [version, type, value] of [
      ["1.0", "Task", { ...task, status: { ...status, state: "completed" } }],
      ["1.0", "Task", { ...task, status: { ...status, timestamp: "2026-01-01T00:00:00+01:00" } }],
      ["1.0", "Task", { ...task, id: undefined }],
      ["1.0", "Task", { ...task, metadata: { errand: { max_attempts: 3 } } }],
      ["1.0", "StreamResponse", { task, message: task.history[0] }],
      ["1.0", "AgentCard", old.body],
      ["0.3", "Card", card.body],
      ["0.3", "Task", task],
    ] as const) {
      expect(() => requireValid(version, type, structuredClone(value)), type).toThrow("not a ");
    }
  });

  test("every response of a test is checked", async () => {
    const { raw } = await startA2aBroker();
    const before = checkCount();
    await raw.rpc("ListTasks", {});
    await raw.rest("GET", "/tasks");
    await raw.rpc("tasks/get", { id: "x" }, { "a2a-version": "0.3" });
    expect(checkCount()).toBe(before + 3);
  });
});

/** Objects that a table describes: not those whose members anybody chooses. */
function* closedObjectsIn(value: Json, name = ""): Generator<readonly [Json, string]> {
  if (typeof value !== "object" || value === null || ["metadata", "params"].includes(name)) return;
  const isMap = ["securitySchemes", "schemes", "security"].includes(name);
  if (!Array.isArray(value) && !isMap) yield [value, name];
  for (const [member, one] of Object.entries(value)) {
    // A map's names are its own; so is a list's place.
    yield* closedObjectsIn(
      one,
      Array.isArray(value) ? (name === "security" ? "schemes" : name) : isMap ? "" : member,
    );
  }
}

test("the broker's metadata is camelCase; what agents name themselves is not changed", async () => {
  const { raw, agent, begin } = await startA2aBroker();
  const { id } = await begin();
  const first = await leaseOf(agent);
  await agent.heartbeat(first.lease, {
    progress: { current_step: "two_steps", tools_used: ["a_b"], eta_seconds: 3 },
  });
  const working = (await raw.rpc("GetTask", { id })).body.result.metadata.errand;
  expect(working).toMatchObject({
    attempt: 1,
    maxAttempts: 3,
    progress: { currentStep: "two_steps", toolsUsed: ["a_b"], etaSeconds: 3 },
  });
  const schema = { type: "object", properties: { max_size: { type: "integer" } } };
  const action = { name: "do_it", arguments: { max_size: 1, inner: { at_once: true } } };
  await agent.interrupt(first.lease, {
    requests: [
      {
        request_id: "a_b",
        message: { parts: [{ text: "?" }], metadata: { agents_own: 1 } },
        action,
        edit: true,
        schema,
      },
      { request_id: "c", text: "and?" },
    ],
  });
  const { status, metadata } = (await raw.rpc("GetTask", { id })).body.result;
  const { interrupt } = metadata.errand;
  expect(Object.keys(interrupt).sort()).toEqual(["expiresAt", "id", "kind", "raisedAt", "requests"]);
  expect(interrupt.requests[0]).toMatchObject({
    requestId: "a_b",
    action,
    schema,
    message: { metadata: { agents_own: 1 } },
  });
  expect(status.message.metadata).toEqual({ interruptId: interrupt.id, requestIds: ["a_b", "c"] });
  expect(status.message.parts.map((part: Json) => part.metadata)).toEqual([
    { requestId: "a_b" },
    { requestId: "c" },
  ]);
  const answered = await raw.rpc("SendMessage", {
    message: jsonMessage("", {
      taskId: id,
      parts: [
        { data: { max_size: 2 }, metadata: { requestId: "a_b", decision: "approve", own_key: 1 } },
        { text: "yes", metadata: { request_id: "c" } },
      ],
      metadata: { interruptId: interrupt.id, my_key: { in_it: 1 } },
    }),
    configuration: { returnImmediately: true },
  });
  const answers = answered.body.result.task.history.slice(-2);
  expect(answers.map((one: Json) => [one.metadata, one.parts[0].metadata])).toEqual([
    [
      expect.objectContaining({
        interruptId: interrupt.id,
        requestId: "a_b",
        decision: "approve",
      }),
      undefined,
    ],
    [
      expect.objectContaining({ interruptId: interrupt.id, requestId: "c", my_key: { in_it: 1 } }),
      { requestId: "c" },
    ],
  ]);
  // The agent gets its own protocol's names, whichever the caller used.
  const { history } = (await leaseOf(agent)).body.delegation;
  expect(history.slice(-2).map((one: Json) => one.metadata)).toMatchObject([
    { interrupt_id: interrupt.id, request_id: "a_b", decision: "approve" },
    { interrupt_id: interrupt.id, request_id: "c", my_key: { in_it: 1 } },
  ]);
  expect(JSON.stringify(history)).not.toMatch(/"(?:interruptId|requestId)"/);
  const twice = { interruptId: interrupt.id, interrupt_id: interrupt.id };
  const refused = await raw.rpc("SendMessage", {
    message: jsonMessage("x", { taskId: id, metadata: twice }),
  });
  expect(refused.body.error.data[1].fieldViolations[0]).toEqual({
    field: "message.metadata.interrupt_id",
    description: "is also sent as interruptId; send one of them",
  });
});

test("delegation_id is not added to the caller's messages, in no form; the agent finds it", async () => {
  const { raw, agent, caller } = await startA2aBroker();
  const own = jsonMessage("work", { metadata: { mine_too: 1 } });
  const plain = jsonMessage("work");
  const old = { kind: "message", messageId: "o", role: "user", parts: [{ kind: "text", text: "x" }] };
  const sent: [Json, unknown][] = [
    [
      (await raw.rpc("SendMessage", { message: own, configuration: { returnImmediately: true } })).body.result
        .task,
      { mine_too: 1 },
    ],
    [
      (
        await raw.rest("POST", "/message:send", {
          message: plain,
          configuration: { returnImmediately: true },
        })
      ).body.task,
      undefined,
    ],
    [
      (
        await raw.rpc(
          "message/send",
          { message: old, configuration: { blocking: false } },
          { "a2a-version": "0.3" },
        )
      ).body.result,
      undefined,
    ],
  ];
  const ids = sent.map(([task]) => task.id);
  for (const [task, metadata] of sent) expect(task.history[0].metadata).toEqual(metadata);
  const { tasks } = (await raw.rpc("ListTasks", {})).body.result;
  expect(JSON.stringify(tasks)).not.toContain("delegation_id");
  for (const id of ids) {
    const { body } = await leaseOf(agent);
    expect(body.request.params.message.metadata.delegation_id).toBe(id);
    expect((await caller.get(id)).body.message.metadata.delegation_id).toBe(id);
  }
});

test("an agent's message or artifact without parts has one without text, because A2A requires a part", async () => {
  const { raw, agent, begin } = await startA2aBroker();
  const { id } = await begin();
  const empty = { messageId: "e", role: "ROLE_AGENT", parts: [] };
  await agent.reply((await leaseOf(agent)).lease, {
    text: undefined,
    message: empty,
    artifacts: [{ artifactId: "a", parts: [] }],
  });
  for (const { body } of [
    await raw.rest("GET", `/tasks/${id}`),
    await raw.rest("GET", "/tasks?includeArtifacts=true"),
  ]) {
    const { status, artifacts } = body.tasks?.[0] ?? body;
    expect([status.message.parts, artifacts]).toEqual([
      [{ text: "" }],
      [{ artifactId: "a", parts: [{ text: "" }] }],
    ]);
  }
  const old = await raw.rpc("tasks/get", { id }, { "a2a-version": "0.3" });
  expect(old.body.result.status.message.parts).toEqual([{ kind: "text", text: "" }]);
});

describe("the cards", () => {
  const WELL_KNOWN = "/a2a/scout/.well-known/agent-card.json";
  const cardPath = (version: string) => `/a2a/scout/cards/${version}.json`;

  test("each version's card has an address of its own, whatever version is asked for", async () => {
    const broker = await startBroker();
    await client(broker.url).agent("scout", { description: "Looks around.", version: "3" });
    const get = (path: string, headers: Record<string, string> = {}) =>
      request(broker.url, "GET", path, { token: null, headers });
    for (const version of ["1.0", "0.3"]) {
      const other = version === "1.0" ? "0.3" : "1.0";
      const pure = await get(cardPath(version));
      expect(pure.body).toEqual((await get(WELL_KNOWN, { "a2a-version": version })).body);
      expect((await get(cardPath(version), { "a2a-version": other })).body).toEqual(pure.body);
      expect(pure.headers.get("vary")).toBe("Accept-Encoding, Origin");
      expect(pure.headers.get("link")).toBe(link(broker.url, other));
      const tag = pure.headers.get("etag") ?? "";
      expect((await get(cardPath(version), { "if-none-match": tag })).status).toBe(304);
    }
    const both = await get(WELL_KNOWN);
    expect(both.headers.get("link")).toBe(`${link(broker.url, "1.0")}, ${link(broker.url, "0.3")}`);
    expect("url" in both.body && "supportedInterfaces" in both.body).toBe(true);
    expect((await get("/a2a/scout/cards/2.0.json")).status).toBe(404);
    expect((await get("/a2a/nobody/cards/1.0.json")).body.code).toBe("agent_unknown");
  });

  const link = (url: string, version: string) =>
    `<${url}${cardPath(version)}>; rel="alternate"; type="application/json"; title="A2A ${version}"`;
});

describe("media types of HTTP+JSON", () => {
  const A2A = "application/a2a+json";
  const JSON_TYPE = "application/json";

  test("an error is plain JSON unless A2A's type is asked for", async () => {
    const { raw } = await startA2aBroker();
    for (const [accept, type] of [
      [undefined, JSON_TYPE],
      ["*/*", JSON_TYPE],
      ["text/html", JSON_TYPE],
      [A2A, A2A],
      [`${A2A}; charset=utf-8`, A2A],
      ["Application/A2A+JSON", A2A],
      [`${JSON_TYPE}, ${A2A};q=0.5`, JSON_TYPE],
      [`${JSON_TYPE};q=0.5, ${A2A}`, A2A],
      [`${A2A};q=0, */*`, JSON_TYPE],
    ] as const) {
      const { status, headers } = await raw.rest("GET", "/tasks/none", undefined, accept ? { accept } : {});
      expect([accept, status, headers.get("content-type")]).toEqual([accept, 404, type]);
    }
    const old = await raw.rest("GET", "/v1/tasks/none", undefined, { "a2a-version": "0.3", accept: A2A });
    expect(old.headers.get("content-type")).toBe(JSON_TYPE);
  });

  test("a request without the right type is 415, with the specification's error", async () => {
    const { raw, caller } = await startA2aBroker();
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonl", "x"]) {
      const typed = { "content-type": type };
      const { status, body, headers } = await raw.rest(
        "POST",
        "/message:send",
        { message: jsonMessage("x") },
        typed,
      );
      expect([status, headers.get("content-type")]).toEqual([415, JSON_TYPE]);
      expect(body.error).toMatchObject({
        code: 415,
        status: "INVALID_ARGUMENT",
        details: [{ reason: "CONTENT_TYPE_NOT_SUPPORTED", domain: "a2a-protocol.org" }],
      });
      const rpc = await raw.rpc("SendMessage", { message: jsonMessage("x") }, typed);
      expect([rpc.status, rpc.body.error.code]).toEqual([415, -32005]);
      const old = { ...typed, "a2a-version": "0.3" };
      const v03 = await raw.rest("POST", "/v1/message:send", {}, old);
      expect([v03.status, v03.body.code]).toEqual([415, -32005]);
    }
    expect((await caller.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
    for (const type of [JSON_TYPE, A2A, `${A2A}; charset=utf-8`]) {
      const params = { message: jsonMessage("x"), configuration: { returnImmediately: true } };
      expect((await raw.rest("POST", "/message:send", params, { "content-type": type })).status).toBe(200);
    }
  });
});

test("§4.6 every response repeats the active extensions: results, errors, empty ones and streams, in both versions", async () => {
  const { raw, url, agent, begin } = await startA2aBroker();
  const { id } = await begin();
  const uri = "urn:errand:a2a:v2";
  const asked = [{ "a2a-extensions": `urn:other,${uri}` }, { "x-a2a-extensions": `${uri} , urn:other` }];
  for (const headers of asked) {
    const [name = ""] = Object.keys(headers);
    for (const version of ["1.0", "0.3"]) {
      const all = { ...headers, "a2a-version": version };
      const [get, v1] = version === "1.0" ? ["GetTask", ""] : ["tasks/get", "/v1"];
      const hook = `${v1}/tasks/${id}/pushNotificationConfigs/none`;
      const answers = [
        await raw.rpc(get, { id }, all),
        await raw.rpc(get, { id: "none" }, all),
        await raw.rpc("none", {}, all),
        await raw.rest("GET", `${v1}/tasks/${id}`, undefined, all),
        await raw.rest("GET", `${v1}/tasks/none`, undefined, all),
        await raw.rest("DELETE", hook, undefined, all),
      ];
      expect(answers.map((one) => one.headers.get(name))).toEqual(answers.map(() => uri));
      expect(answers.at(-1)?.status).toBe(204);
      const [other = ""] = asked.flatMap((one) => Object.keys(one)).filter((one) => one !== name);
      expect(answers.map((one) => one.headers.get(other))).toEqual(answers.map(() => null));
    }
  }
  for (const headers of asked) {
    const [name = ""] = Object.keys(headers);
    for (const path of [`rest/tasks/${id}:subscribe`, `rest/v1/tasks/${id}:subscribe`]) {
      const cut = new AbortController();
      const response = await fetch(`${url}/a2a/scout/${path}`, {
        headers: {
          authorization: `Bearer ${OPERATOR}`,
          "a2a-version": path.startsWith("rest/v1/") ? "0.3" : "1.0",
          ...headers,
        },
        signal: cut.signal,
      });
      expect([response.status, response.headers.get(name)]).toEqual([200, uri]);
      cut.abort();
    }
  }
  await until(async () => (await agent.lease("scout")).body.leases.length === 1);
});

test("§4.6 an unknown extension is ignored, and no request needs one", async () => {
  const { raw, url } = await startA2aBroker();
  const unknown = await raw.rpc("ListTasks", {}, { "a2a-extensions": "urn:other" });
  expect([unknown.body.result.tasks, unknown.headers.get("a2a-extensions")]).toEqual([[], null]);
  expect((await raw.rpc("ListTasks", {})).headers.get("a2a-extensions")).toBeNull();
  const viewer = rawCalls(url, (await as(url, "viewer:wall")).token);
  expect((await viewer.rpc("ListTasks", {})).status).toBe(200);
});

test("an error before the first event of a 0.3 stream is its only event; of a 1.0 stream it is JSON", async () => {
  const { url, caller, raw } = await startA2aBroker();
  const task = { id: "dlg_0_00000000000000000000000000" };
  const message = { kind: "message", role: "user", messageId: "m", parts: [{ kind: "text", text: "x" }] };
  for (const [method, params, code, agent] of [
    ["tasks/resubscribe", task, -32001, "scout"],
    ["tasks/resubscribe", {}, -32602, "scout"],
    ["message/stream", {}, -32602, "scout"],
    ["message/stream", { message: { ...message, taskId: task.id } }, -32001, "scout"],
    ["message/stream", { message }, expect.any(Number), "nobody"],
  ] as const) {
    const response = await fetch(`${url}/a2a/${agent}/rpc`, {
      method: "POST",
      headers: { authorization: `Bearer ${caller.token}`, "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 7, method, params }),
    });
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "text/event-stream; charset=utf-8",
    ]);
    const [, data = ""] = /^data: (.*)\n\n$/.exec(await response.text()) ?? [];
    expect(JSON.parse(data)).toMatchObject({ jsonrpc: "2.0", id: 7, error: { code } });
  }
  const plain = await raw.rpc("tasks/get", task, { "a2a-version": "0.3" });
  expect(plain.headers.get("content-type")).toMatch(/json/);
  const new10 = await raw.rpc("SubscribeToTask", task);
  expect([new10.headers.get("content-type"), new10.body.error.code]).toEqual(["application/json", -32001]);
  const anonymous = await fetch(`${url}/a2a/scout/rpc`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tasks/resubscribe", params: task }),
  });
  expect([anonymous.status, anonymous.headers.get("content-type")]).toEqual([401, "application/json"]);
});
