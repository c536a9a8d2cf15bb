/** `errand mcp` as a process between real MCP clients and a real gateway. */
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { as, client, freshDb, OPERATOR, startBroker } from "../../support/broker.ts";
import { startGatewayProcess } from "../../support/gateway-process.ts";
import { type Era, MODERN, toolOutput } from "../../support/mcp.ts";
import { firstStdioClient, mcpLines, modernMeta, stdioClient } from "../../support/mcp-stdio.ts";
import { taskSession } from "../../support/tasks-client.ts";
import { until } from "../../support/until.ts";

// Each test starts several processes, on a machine that may be busy.
vi.setConfig({ testTimeout: 180_000 });

const ERAS: readonly Era[] = ["modern", "legacy"];
const LEGACY = "2025-11-25";

async function setup() {
  const { url } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const lease = async (): Promise<string> =>
    (await scout.lease("scout", { wait_seconds: 20 })).body.leases[0].lease_id;
  return { url, scout, alice, lease, broker: { url, token: alice.token } };
}

const initialize = (id: unknown) => ({
  id,
  method: "initialize",
  params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: "raw", version: "1" } },
});

type Tool = { readonly name: string; readonly arguments: Record<string, unknown> };
interface Hears {
  readonly onprogress?: (progress: { message?: string | undefined }) => void;
  readonly signal?: AbortSignal;
}

/** Three MCP clients behind one interface. */
const CLIENTS = [
  ...ERAS.map((era) => ({
    name: `the SDK's client, ${era}`,
    async connect(broker: { url: string; token: string }) {
      const client = await stdioClient(broker, era);
      return {
        tools: async () => (await client.listTools()).tools.map(({ name }) => name),
        call: (tool: Tool, hears: Hears = {}) => client.callTool(tool, hears),
      };
    },
  })),
  {
    name: "the first generation's client",
    async connect(broker: { url: string; token: string }) {
      const client = await firstStdioClient(broker);
      return {
        tools: async () => (await client.listTools()).tools.map(({ name }) => name),
        call: (tool: Tool, hears: Hears = {}) => client.callTool(tool, undefined, hears),
      };
    },
  },
];

describe.each(CLIENTS)("$name", ({ connect }) => {
  test("lists tools, delegates with progress, and cancels", async () => {
    const { broker, scout, alice, lease } = await setup();
    const { tools, call } = await connect(broker);
    expect(await tools()).toEqual(expect.arrayContaining(["delegate_task", "broker_health"]));
    const notes: (string | undefined)[] = [];
    // Other line separators belong to the text.
    const task = "look\u2028here";
    const calling = call(
      { name: "delegate_task", arguments: { agent: "scout", task } },
      { onprogress: ({ message }) => notes.push(message) },
    );
    const { body } = await scout.lease("scout", { wait_seconds: 20 });
    expect(body.leases[0].request.params.message.parts).toEqual([{ text: task }]);
    const { lease_id } = body.leases[0];
    await scout.heartbeat(lease_id, { progress: { message: "half of it", done: 1, total: 2 } });
    await until(() => notes.includes("scout: 1/2 half of it"), { what: "the progress", timeoutMs: 50_000 });
    await scout.reply(lease_id, { text: "seen\u2028there" });
    expect(toolOutput(await calling).data).toMatchObject({
      state: "completed",
      reply: { text: "seen\u2028there" },
    });

    const enough = new AbortController();
    const args = { agent: "scout", task: "never mind", cancel_on_disconnect: true };
    const canceling = call({ name: "delegate_task", arguments: args }, { signal: enough.signal }).catch(
      (error: unknown) => error,
    );
    await lease();
    enough.abort(new Error("enough"));
    expect(await canceling).toBeInstanceOf(Error);
    const states = async () =>
      (await alice.call("GET", "/v1/delegations")).body.delegations.map(
        ({ state }: { state: string }) => state,
      );
    await until(async () => (await states()).includes("canceled"), { what: "the cancel", timeoutMs: 50_000 });
    expect((await call({ name: "broker_health", arguments: {} })).isError ?? false).toBe(false);
  });
});

test("each client gets an error while the broker is unavailable, and continues afterwards", async () => {
  const db = await freshDb();
  const first = await startGatewayProcess(db);
  const { url, port } = first;
  const alice = await as(url, "caller:alice");
  const clients = await Promise.all(CLIENTS.map(({ connect }) => connect({ url, token: alice.token })));
  const health = () => clients.map(({ call }) => call({ name: "broker_health", arguments: {} }));
  const healthy = async () => {
    for (const result of await Promise.all(health())) {
      expect(toolOutput(result).data).toMatchObject({ principal: "caller:alice" });
    }
  };
  await healthy();
  await first.kill();
  for (const asking of await Promise.allSettled(health())) {
    expect(asking).toMatchObject({
      reason: {
        code: 503,
        message: expect.stringContaining("errand serve"),
        data: { category: "TRANSPORT", code: "unreachable", retryable: true },
      },
    });
  }
  await startGatewayProcess(db, { port });
  await healthy();
});

test("a client of the Tasks extension answers a question, sees the end, and cancels a task", async () => {
  const { broker, scout, lease } = await setup();
  const client = await stdioClient(broker, "modern");
  const { ask } = mcpLines(broker);
  const tasks = taskSession(client, {
    protocolVersion: MODERN,
    dispatch: (request) => {
      const { method, params } = JSON.parse(JSON.stringify(request));
      return ask({ method, params });
    },
    onInput: async () => ({ action: "accept", content: { answer: "blue" } }),
  });
  onTestFinished(() => tasks.close());
  const execution = await tasks.callTool("delegate_task", { agent: "scout", task: "paint it" });
  expect(execution.kind).toBe("task");
  const settled = execution.settle();
  await scout.interrupt(await lease(), { text: "Which colour?" });
  const { body } = await scout.lease("scout", { wait_seconds: 20 });
  const [second] = body.leases;
  expect(second.request.params.message.parts).toEqual([{ text: "blue" }]);
  await scout.reply(second.lease_id, { text: "painted" });
  expect((await settled).outcome).toMatchObject({
    status: "completed",
    result: { structuredContent: { reply: { text: "painted" } } },
  });
  const unwanted = await tasks.callTool("delegate_task", { agent: "scout", task: "paint it red" });
  await lease();
  await unwanted.cancel();
  expect((await unwanted.settle()).outcome.status).toBe("cancelled");
});

test("a session that is unknown by now is reopened, once for all requests that find it so", async () => {
  const { url } = await startBroker();
  let lost: string | undefined;
  const statuses: number[] = [];
  const front = createServer(async (request, response) => {
    const { "mcp-session-id": session, authorization = "", accept = "" } = request.headers;
    const headers: Record<string, string> = { authorization, accept, "content-type": "application/json" };
    if (session !== undefined) headers["mcp-session-id"] = session === lost ? "mcp_unknown" : String(session);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = "", url: path } = request;
    const body = method === "POST" ? Buffer.concat(chunks) : null;
    const answer = await fetch(`${url}${path}`, { method, headers, body });
    statuses.push(answer.status);
    const given = [...answer.headers].filter(([name]) => !/^(?:connection|keep-alive|transfer-)/.test(name));
    response.writeHead(answer.status, Object.fromEntries(given)).end(await answer.text());
    if (lost === undefined && session !== undefined) lost = String(session);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void front.close());
  await once(front, "listening");
  const address = front.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const { ask, send, messages } = mcpLines({ url: `http://127.0.0.1:${port}`, token: OPERATOR });
  expect((await ask(initialize("open"))).result.protocolVersion).toBe(LEGACY);
  send({ method: "notifications/initialized" });
  await until(() => lost !== undefined);
  const before = messages.length;
  statuses.length = 0;
  const answers = await Promise.all(["a", "b", "c"].map((id) => ask({ id, method: "tools/list" })));
  for (const { result } of answers) expect(result.tools.length).toBeGreaterThan(5);
  // The client does not see the handshake in between.
  expect(
    messages
      .slice(before)
      .map(({ id }) => id)
      .sort(),
  ).toEqual(["a", "b", "c"]);
  // Three refused requests, the handshake in two messages, and the three requests again.
  expect(statuses.sort()).toEqual([200, 200, 200, 200, 202, 404, 404, 404]);
});

test("an invalid message is refused, and stdout has nothing else", async () => {
  const { broker } = await setup();
  const { write, ask, messages, stderr } = mcpLines(broker);
  write("{nonsense");
  write("[1]");
  write("");
  await ask({ id: "x\u2028y", method: "tools/list", params: { _meta: modernMeta() } });
  expect(messages.map(({ id, error }) => [id, error?.code ?? 0])).toEqual([
    [null, -32700],
    [null, -32600],
    ["x\u2028y", 0],
  ]);
  // A name that a header cannot carry is encoded.
  const params = { name: "späh", arguments: {}, _meta: modernMeta() };
  const { error } = await ask({ method: "tools/call", params });
  expect(error).toMatchObject({ code: -32602, data: { code: "invalid_request" } });
  expect(stderr()).toBe("");
});

test("a wrong token is reported to the client with the request's id, and on stderr", async () => {
  const { url } = await setup();
  const { ask, stderr } = mcpLines({ url, token: "not-a-token-canary" });
  const { error } = await ask({ id: 7, method: "tools/list", params: { _meta: modernMeta() } });
  expect(error).toMatchObject({ code: 401, data: { code: "unauthenticated" } });
  // A client on stdio sends no headers.
  expect(JSON.stringify(error)).not.toContain("Authorization");
  expect(error).toMatchObject({
    data: { recovery: expect.stringContaining("set ERRAND_TOKEN in the env of this server") },
  });
  await until(() => stderr().includes("check ERRAND_TOKEN"));
  expect(stderr()).not.toContain("canary");
});

test("an interrupted response says that the call may have taken effect", async () => {
  const db = await freshDb();
  const gateway = await startGatewayProcess(db);
  const api = client(gateway.url);
  await api.agent("scout");
  const { ask } = mcpLines({ url: gateway.url, token: "operator-token-for-tests" });
  const params = {
    name: "delegate_task",
    arguments: { agent: "scout", task: "look" },
    _meta: { ...modernMeta(), progressToken: 1 },
  };
  const asking = ask({ method: "tools/call", params });
  await api.lease("scout", { wait_seconds: 20 });
  await gateway.kill();
  expect((await asking).error).toMatchObject({
    code: 503,
    message: expect.stringContaining("list_tasks"),
    data: { code: "connection_lost", details: { outcome: "unknown" } },
  });
});

test("a server that is not a broker is reported as such, and every request gets a response", async () => {
  const answers = [
    { status: 502, type: "text/html", body: "<h1>Bad Gateway</h1>", expected: { code: 503 } },
    { status: 200, type: "application/json", body: "", expected: { code: 503 } },
    { status: 200, type: "text/event-stream", body: ": nothing\n\n", expected: { code: 503 } },
  ];
  const left = [...answers];
  const server = createServer((_request, response) => {
    const { status = 500, type = "", body = "" } = left.shift() ?? {};
    response.writeHead(status, { "content-type": type }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const { ask } = mcpLines({ url: `http://127.0.0.1:${port}`, token: "any" });
  for (const { expected } of answers) {
    const { error } = await ask({ method: "tools/list", params: { _meta: modernMeta() } });
    expect(error).toMatchObject({ ...expected, data: { category: "TRANSPORT", retryable: true } });
  }
});

test("it ends when stdin ends, even during waits", async () => {
  const { broker } = await setup();
  const { ask, send, child, ended, messages } = mcpLines(broker);
  await ask(initialize(1));
  const params = { name: "wait_for_results", arguments: { wait_seconds: 50 } };
  send({ id: 2, method: "tools/call", params });
  send({ id: 3, method: "tools/list" });
  child.stdin.end();
  expect(await ended()).toBe(0);
  // Every request that could get a response got one.
  expect(messages.map(({ id }) => id)).toEqual([1, 3]);
});

test("pings reach the client and its responses the broker; a lease of a client that ended is released at once", async () => {
  const { url, scout, alice } = await setup();
  const broker = { url, token: scout.token };
  const poll = { name: "poll_inbox", arguments: { wait_seconds: 20 } };
  const client = await stdioClient(broker, "legacy");
  await alice.delegate("scout");
  const [task] = toolOutput(await client.callTool(poll)).data.tasks;
  expect(task).not.toHaveProperty("confirm_by");
  await scout.reply(task.lease_id);

  const { ask, send, child, ended, messages } = mcpLines(broker);
  await ask(initialize("open"));
  const { id } = (await alice.delegate("scout")).body;
  send({ id: "poll", method: "tools/call", params: poll });
  await until(() => messages.some(({ method }) => method === "ping"), {
    what: "the ping",
    timeoutMs: 50_000,
  });
  await until(async () => (await alice.get(id)).body.state === "working", { what: "the lease" });
  child.stdin.end();
  const { leases } = (await scout.lease("scout", { wait_seconds: 8 })).body;
  expect(leases).toMatchObject([{ attempt: 1, delegation: { id } }]);
  expect(await ended()).toBe(0);
});

test("without a token it does not start; without a broker it starts, and says what is missing", async () => {
  const { url } = await setup();
  const without = mcpLines({ url });
  expect(await without.ended()).toBe(77);
  expect(without.stderr()).toContain("ERRAND_TOKEN");
  const { ask, stderr } = mcpLines({});
  const { error } = await ask({ method: "tools/list", params: { _meta: modernMeta() } });
  expect(error).toMatchObject({ code: 503, message: expect.stringContaining("errand serve") });
  expect(stderr()).toContain("no broker found");
});
