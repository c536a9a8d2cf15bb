/**
 * Half a character, as left by a JavaScript `slice`: every API refuses it with its path, replies of agents that speak only
 * A2A are repaired, and the script tolerates a stored one.
 */
import { expect, test } from "vitest";
import { Agent } from "../../../src/client/agent.ts";
import { startA2aServer } from "../../support/a2a-server.ts";
import { as, client, request, startBroker } from "../../support/broker.ts";
import { dump } from "../../support/dump.ts";
import { openLifecycle } from "../../support/lifecycle.ts";

const HALF = "smile \ud83d";
const WHOLE = "smile \ufffd";
const parts = [{ text: HALF }];

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const { leases } = (await api.lease("scout")).body;
  return { ...broker, api, id: String(id), lease: String(leases[0].lease_id) };
}

/** Method, path, body and the path of the issue; `{id}` and `{lease}` are filled in. */
const REST: readonly [string, string, unknown, string][] = [
  ["POST", "/v1/delegations", { target: "scout", task: HALF }, "task"],
  ["POST", "/v1/delegations", { target: "scout", message: { parts } }, "message.parts.0.text"],
  ["POST", "/v1/delegations", { target: "scout", message: { messageId: HALF, parts } }, "message.messageId"],
  ["POST", "/v1/delegations", { target: "scout", task: "x", metadata: { [HALF]: 1 } }, `metadata.${WHOLE}`],
  ["POST", "/v1/delegations", { target: "scout", task: "x", context_id: HALF }, "context_id"],
  [
    "POST",
    "/v1/delegations",
    { target: "scout", message: { parts: [{ data: [{ a: [HALF] }] }] } },
    "message.parts.0.data.0.a.0",
  ],
  ["POST", "/v1/delegations/batch", { delegations: [{ target: "scout", task: HALF }] }, "delegations.0.task"],
  ["POST", "/v1/delegations/{id}/messages", { text: HALF }, "text"],
  ["POST", "/v1/delegations/{id}/cancel", { reason: HALF }, "reason"],
  ["POST", "/v1/delegations/{id}/answer", { interrupt_id: HALF, text: "x" }, "interrupt_id"],
  ["POST", "/v1/agents/scout/leases", { worker_id: HALF }, "worker_id"],
  ["PUT", "/v1/agents/scout", { description: HALF }, "description"],
  ["POST", "/v1/leases/{lease}/heartbeat", { seen: HALF }, "seen"],
  ["POST", "/v1/leases/{lease}/heartbeat", { progress: { message: HALF } }, "progress.message"],
  ["POST", "/v1/leases/{lease}/artifacts", { artifact: { artifactId: HALF, parts } }, "artifact.artifactId"],
  ["POST", "/v1/leases/{lease}/interrupt", { kind: "input", id: HALF }, "id"],
  [
    "POST",
    "/v1/leases/{lease}/interrupt",
    { kind: "input", requests: [{ request_id: HALF }] },
    "requests.0.request_id",
  ],
  ["POST", "/v1/leases/{lease}/release", { reason: HALF }, "reason"],
  ["POST", "/v1/leases/{lease}/reply", { state: "completed", text: HALF }, "text"],
];

test("REST refuses it with its path, and writes nothing", async () => {
  const { api, redis, id, lease } = await setup();
  const before = await dump(redis);
  for (const [method, path, body, where] of REST) {
    const answer = await api.call(method, path.replace("{id}", id).replace("{lease}", lease), body);
    expect([path, answer.status, answer.body.code]).toEqual([path, 400, "invalid_request"]);
    expect(answer.body.details.issues[0].path).toBe(where);
    expect(answer.body.details.issues[0].reason).toContain("half a character");
  }
  expect(await dump(redis)).toEqual(before);
});

test("escaped whole characters pass, and so does the text of an escape", async () => {
  const { api, id } = await setup();
  const text = "\ud83d\ude00 \\ud83d";
  const body = `{"text":"\\ud83d\\ude00 \\\\ud83d"}`;
  expect((await api.call("POST", `/v1/delegations/${id}/messages`, body)).status).toBeLessThan(300);
  expect((await api.get(id)).body.history.at(-1).parts).toEqual([{ text }]);
});

test("paths, queries and headers cannot have any", async () => {
  const { api, url, id } = await setup();
  const answers = [
    await api.call("GET", "/v1/delegations?context_id=%ED%A0%BD"),
    await api.call("GET", "/v1/delegations/%ED%A0%BD"),
    await api.call("GET", "/v1/agents/%ED%A0%BD"),
    await api.call("GET", `/v1/delegations/${id}/events?after=%ED%A0%BD`),
    await request(url, "POST", "/v1/delegations", {
      body: { target: "scout", task: "x" },
      headers: { "idempotency-key": Buffer.from([0xed, 0xa0, 0xbd]).toString("latin1") },
    }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([400, 404, 400, 400, 400]);
});

const said = (more: object = {}) => ({ messageId: "m", role: "ROLE_USER", parts, ...more });
const old = { kind: "message", messageId: "m", role: "user", parts: [{ kind: "text", text: HALF }] };

test.each([
  [
    "JSON-RPC of 1.0",
    "rpc",
    "1.0",
    { jsonrpc: "2.0", id: 7, method: "SendMessage", params: { message: said() } },
  ],
  [
    "JSON-RPC of 0.3",
    "rpc",
    "0.3",
    { jsonrpc: "2.0", id: 7, method: "message/send", params: { message: old } },
  ],
  ["HTTP+JSON of 1.0", "rest/message:send", "1.0", { message: said({ metadata: { [HALF]: HALF } }) }],
  [
    "HTTP+JSON of 0.3",
    "rest/v1/message:send",
    "0.3",
    { request: { messageId: HALF, content: [{ text: "x" }] } },
  ],
])("A2A, %s, refuses it", async (_name, path, version, body) => {
  const { url, redis } = await setup();
  const before = await dump(redis);
  const answer = await request(url, "POST", `/a2a/scout/${path}`, {
    body,
    headers: { "a2a-version": version },
  });
  if (path === "rpc") {
    expect(answer.body).toMatchObject({ id: 7, error: { code: -32602 } });
    expect(JSON.stringify(answer.body.error.data)).toContain("half a character");
  } else {
    expect([answer.status, JSON.stringify(answer.body)]).toEqual([
      400,
      expect.stringContaining("half a character"),
    ]);
  }
  expect(await dump(redis)).toEqual(before);
});

test.each(["2026-07-28", "2025-11-25"])("MCP of %s refuses it", async (version) => {
  const { url, redis } = await setup();
  const before = await dump(redis);
  const { status, body } = await request(url, "POST", "/mcp", {
    headers: {
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": version,
      "mcp-method": "tools/call",
      "mcp-name": "delegate",
    },
    body: {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "delegate", arguments: { agent: "scout", task: HALF } },
    },
  });
  expect([status, body.error.code]).toEqual([400, -32600]);
  expect(body.error.message).toContain("half a character");
  expect(await dump(redis)).toEqual(before);
});

test("it is repaired for an agent that speaks only A2A: its work is not lost", async () => {
  const { api, id, lease } = await setup();
  const { status, body } = await api.call("POST", "/v1/agents/scout/replies", {
    jsonrpc: "2.0",
    id: lease,
    result: {
      task: {
        id: "t",
        status: { state: "TASK_STATE_COMPLETED", message: { messageId: HALF, role: "ROLE_AGENT", parts } },
        artifacts: [{ artifactId: HALF, parts, metadata: { [HALF]: 1 } }],
      },
    },
  });
  expect([status, body.outcome]).toEqual([200, "matched"]);
  const done = (await api.get(id)).body;
  expect(done).toMatchObject({
    state: "completed",
    reply: { messageId: WHOLE, parts: [{ text: WHOLE }] },
    artifacts: [{ artifactId: WHOLE, parts: [{ text: WHOLE }], metadata: { [WHOLE]: 1 } }],
  });
});

test("it is repaired for an agent of the library", async () => {
  const { url, api } = await setup();
  const { token } = await as(url, "agent:other");
  await api.agent("other");
  const { id } = (await api.delegate("other")).body;
  const agent = new Agent({ agent: "other", url, token, once: true }, async (work) => {
    await work.artifact({ artifactId: HALF, parts });
    return { state: "failed", error: { code: "half", message: HALF } };
  });
  await agent.run();
  const done = (await api.get(id)).body;
  expect(done.error.message).toBe(WHOLE);
  expect(done.state).toBe("failed");
  expect(JSON.stringify((await api.events(id)).body)).toContain(WHOLE);
});

test("it is repaired for a push agent", async () => {
  const server = await startA2aServer({
    turn(turn) {
      turn.begin();
      turn.artifact("out", HALF);
      turn.status("COMPLETED", HALF);
    },
  });
  const api = client((await startBroker({ callbackAllow: ["127.0.0.1"] })).url);
  await api.agent("remote", { delivery: { mode: "push", url: server.url } });
  const { id } = (await api.delegate("remote")).body;
  const { body } = await api.get(id, "?wait_seconds=15");
  expect(body).toMatchObject({
    state: "completed",
    reply: { parts: [{ text: WHOLE }] },
    artifacts: [{ parts: [{ text: WHOLE }] }],
  });
});

test("the script tolerates one in a stored message", async () => {
  const { inState, writer, move } = await openLifecycle();
  const id = await inState("working");
  expect(await move("message", id, { message_id: HALF })).toMatchObject({ kind: "ok" });
  const artifact = { artifactId: HALF, parts: [] };
  const kept = await writer.move({ move: "artifact", id, params: { fence: 1 }, artifacts: [{ artifact }] });
  expect(kept.outcome.kind).toBe("ok");
  const seen = await writer.move({ move: "heartbeat", id, params: { fence: 1, seen: HALF } });
  expect([seen.outcome.kind, seen.unseen]).toEqual(["ok", []]);
  expect(await move("interrupt", id, { interrupt_id: HALF })).toMatchObject({ kind: "ok" });
  expect(await move("answer", id, { interrupt_id: HALF })).toMatchObject({ kind: "ok" });
});

test("a follow-up is acknowledged by its id, whatever its characters are, and with it the ones before", async () => {
  const { writer, inState, move } = await openLifecycle();
  const id = await inState("working");
  for (const text of ["a/\n", HALF, "c"]) await move("message", id, { message_id: text, message_hash: text });
  const beat = async (seen: string) =>
    (await writer.move({ move: "heartbeat", id, params: { fence: 1, seen } })).unseen;
  expect(await beat("none")).toHaveLength(3);
  expect(await beat("a/\n")).toHaveLength(2);
  expect(await beat(HALF)).toHaveLength(1);
  expect(await beat(HALF)).toHaveLength(1);
  expect(await beat("c")).toEqual([]);
});
