/** Authentication, origins and invalid requests at /mcp, and sessions. */
import { hash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { describe, expect, test } from "vitest";
import { keys } from "../../../src/redis/keys.ts";
import { as, client, OPERATOR, startBroker, type TestOptions } from "../../support/broker.ts";
import {
  type Era,
  firstClient,
  INITIALIZE,
  LEGACY,
  MODERN,
  mcpClient,
  openSession,
  postMcp,
  requestModern,
  sendMcp,
} from "../../support/mcp.ts";

const LIST = { jsonrpc: "2.0", id: 2, method: "tools/list", params: {} };

async function open(url: string, token: string) {
  const opened = await openSession(url, token);
  const session = { ...opened, "mcp-protocol-version": LEGACY };
  return {
    id: opened["mcp-session-id"],
    session,
    list: (by = token, to = url) => postMcp(to, by, LIST, { headers: session }),
  };
}

/** A request with headers that fetch does not allow. */
function statusOf(url: string, headers: Record<string, string>): Promise<{ status: number; text: string }> {
  const { port } = new URL(url);
  const all = { authorization: `Bearer ${OPERATOR}`, "content-type": "application/json", ...headers };
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { port, host: "127.0.0.1", path: "/mcp", method: "POST", headers: all },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (more: string) => {
          text += more;
        });
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
      },
    );
    request.on("error", reject);
    request.end(JSON.stringify(INITIALIZE));
  });
}

describe("the endpoint", () => {
  test("names no authorization server", async () => {
    const { url } = await startBroker();
    for (const path of [
      "/.well-known/oauth-protected-resource",
      "/.well-known/oauth-protected-resource/mcp",
    ]) {
      expect((await fetch(`${url}${path}`)).status).toBe(404);
    }
    const { headers } = await postMcp(url, null, INITIALIZE);
    expect(headers.get("www-authenticate")).not.toContain("resource_metadata");
  });

  test("says how to authenticate", async () => {
    const { url } = await startBroker();
    for (const token of [null, "wrong"]) {
      const answer = await postMcp(url, token, INITIALIZE);
      expect(answer.status).toBe(401);
      expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer /);
      expect(answer.body).toMatchObject({
        jsonrpc: "2.0",
        error: {
          code: 401,
          data: {
            category: "AUTH",
            code: "unauthenticated",
            retryable: false,
            recovery: expect.stringContaining("Authorization: Bearer"),
          },
        },
      });
    }
  });

  test("refuses foreign origins and rebound hosts", async () => {
    const { url } = await startBroker();
    const { port } = new URL(url);
    const accept = "application/json, text/event-stream";
    const good = await statusOf(url, {
      accept,
      host: `localhost:${port}`,
      origin: `http://localhost:${port}`,
    });
    expect(good.status).toBe(200);
    for (const headers of [{ origin: "https://evil.example" }, { host: "evil.example" }]) {
      const { status, text } = await statusOf(url, { accept, ...headers });
      expect(status).toBe(403);
      expect(JSON.parse(text)).toMatchObject({ code: "forbidden", category: "AUTH" });
    }
  });

  test("allows an allowed origin's pages the headers that MCP needs", async () => {
    const { url } = await startBroker({ allowedOrigins: ["https://ops.example"] });
    const preflight = await fetch(`${url}/mcp`, {
      method: "OPTIONS",
      headers: { origin: "https://ops.example", "access-control-request-method": "POST" },
    });
    const allowed = preflight.headers.get("access-control-allow-headers")?.toLowerCase() ?? "";
    for (const name of ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"]) {
      expect(allowed).toContain(name);
    }
    const answer = await postMcp(url, OPERATOR, INITIALIZE, { headers: { origin: "https://ops.example" } });
    expect(answer.headers.get("access-control-expose-headers")).toContain("Mcp-Session-Id");
  });

  test("returns the ids of a batch, and tokens for progress, byte for byte", async () => {
    const { url } = await startBroker();
    const { session } = await open(url, OPERATOR);
    const ids = ["1732523456789012345", "1e2", "-0.5", '"a\\/b"', "7"];
    const calls = ids.map(
      (id) =>
        `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"list_tasks","arguments":null,"_meta":{"progressToken":${id}}}}`,
    );
    const unknown =
      '{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"no_such"}}';
    const batch = await sendMcp(url, OPERATOR, `[${[...calls, unknown].join(",")}]`, { headers: session });
    const text = await batch.text();
    expect(batch.status, text).toBe(200);
    for (const id of [...ids, "9007199254740993"]) expect(text).toContain(`"id":${id}`);
    await client(url).agent("scout");
    const wait = '"name":"delegate_task","arguments":{"agent":"scout","task":"x","wait_seconds":1}';
    const meta = `"io.modelcontextprotocol/protocolVersion":"${MODERN}","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"progressToken":1732523456789012345`;
    const modern = {
      "mcp-protocol-version": MODERN,
      "mcp-method": "tools/call",
      "mcp-name": "delegate_task",
    };
    for (const [headers, _meta] of [
      [session, '"progressToken":1732523456789012345'],
      [modern, meta],
    ] as const) {
      const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${wait},"_meta":{${_meta}}}}`;
      const single = await sendMcp(url, OPERATOR, call, { headers });
      const said = await single.text();
      expect(single.status, said).toBe(200);
      expect(said).toContain('"progressToken":1732523456789012345');
      expect(text + said).not.toContain("errand-id");
    }
  });

  test("refuses invalid requests, never with a reserved code", async () => {
    const { url } = await startBroker({ maxBodyBytes: 4_096 });
    const { session } = await open(url, OPERATOR);
    const cases: [string, Awaited<ReturnType<typeof postMcp>>, number, number][] = [
      ["no JSON", await postMcp(url, OPERATOR, "{"), 400, -32700],
      ["not a message", await postMcp(url, OPERATOR, { hello: 1 }), 400, -32600],
      ["too large", await postMcp(url, OPERATOR, { x: "y".repeat(5_000) }), 413, -32600],
      [
        "a media type other than JSON",
        await postMcp(url, OPERATOR, LIST, { headers: { "content-type": "text/plain" } }),
        415,
        -32600,
      ],
      [
        "an Accept header without JSON",
        await postMcp(url, OPERATOR, LIST, { headers: { ...session, accept: "text/html" } }),
        406,
        -32600,
      ],
      [
        "an unknown version",
        await postMcp(url, OPERATOR, LIST, { headers: { ...session, "mcp-protocol-version": "2023-01-01" } }),
        400,
        -32600,
      ],
      ["no session", await postMcp(url, OPERATOR, LIST), 400, -32600],
      [
        "headers that contradict the body",
        await requestModern(url, OPERATOR, "tools/list", {}, { headers: { "mcp-method": "tools/call" } }),
        400,
        -32020,
      ],
      ["no such method", await requestModern(url, OPERATOR, "prompts/list"), 404, -32601],
    ];
    for (const [what, { status, body }, expected, code] of cases) {
      expect([what, status, body.error.code], JSON.stringify(body)).toEqual([what, expected, code]);
    }
    const listening = await fetch(`${url}/mcp`, { headers: { authorization: `Bearer ${OPERATOR}` } });
    expect([listening.status, listening.headers.get("allow")]).toEqual([405, "POST, OPTIONS"]);
  });

  test("names itself and its extension in server/discover", async () => {
    const { url } = await startBroker();
    const { body, headers } = await requestModern(url, OPERATOR, "server/discover");
    expect(body.result).toMatchObject({
      resultType: "complete",
      supportedVersions: [MODERN],
      capabilities: { tools: {}, resources: {}, extensions: { "io.modelcontextprotocol/tasks": {} } },
      cacheScope: "private",
    });
    expect(headers.get("x-request-id")).toMatch(/^req_/);
    expect(headers.get("mcp-session-id")).toBeNull();
  });
});

describe("a session", () => {
  const start = async (options: TestOptions = {}) => {
    const broker = await startBroker(options);
    const alice = await as(broker.url, "caller:alice");
    return { ...broker, alice };
  };

  test("belongs to its principal and its broker, and no client ends it", async () => {
    const { url, alice } = await start();
    const { id, session, list } = await open(url, alice.token);
    expect(id).toMatch(/^[\x21-\x7e]{32,}$/);
    expect((await list()).status).toBe(200);
    const bob = await as(url, "caller:bob");
    const foreign = await list(bob.token);
    const unknown = await postMcp(url, bob.token, LIST, {
      headers: { ...session, "mcp-session-id": "mcp_none" },
    });
    expect(foreign.status).toBe(404);
    expect(foreign.body.error.data.recovery).toContain("session");
    const errorOf = ({ body: { error } }: typeof foreign) => ({
      ...error,
      data: { ...error.data, request_id: "" },
    });
    expect(errorOf(foreign)).toEqual(errorOf(unknown));
    const strange = await startBroker();
    expect((await list(OPERATOR, strange.url)).status).toBe(404);
    const headers = { ...session, authorization: `Bearer ${alice.token}` };
    expect((await fetch(`${url}/mcp`, { method: "DELETE", headers })).status).toBe(405);
    expect((await list()).status).toBe(200);
  });

  test("is known at every gateway, also after a day, and with another token of its principal", async () => {
    const { url, alice, another, clock, gateway } = await start();
    const { url: other } = await another();
    const { list } = await open(url, alice.token);
    expect((await list(alice.token, other)).status).toBe(200);
    clock.offset_ms += 86_400_000;
    expect((await list()).status).toBe(200);
    const newer = await as(url, "caller:alice");
    await gateway.broker.tokens.revoke(alice.tokenId);
    expect((await list(newer.token)).status).toBe(200);
    expect((await list()).status).toBe(401);
  });

  test("has the name of its client in its id, at most 128 characters of any text", async () => {
    const { url, alice } = await start();
    for (const name of ["", "a_b.c", "\u4f60".repeat(500)]) {
      const params = { ...INITIALIZE.params, clientInfo: { name, version: "1" } };
      const { headers } = await postMcp(url, alice.token, { ...INITIALIZE, params });
      const id = headers.get("mcp-session-id") ?? "";
      expect(id.length).toBeLessThan(600);
      const session = { "mcp-session-id": id, "mcp-protocol-version": LEGACY };
      expect((await postMcp(url, alice.token, LIST, { headers: session })).status, name).toBe(200);
    }
  });

  test("is unknown by an id that is longer than the broker makes one", async () => {
    const { url, alice, gateway } = await start();
    const idOf = (name: string) => {
      const owned = [gateway.broker.id, "caller:alice", "r", name].join("\n");
      return `mcp_r_${hash("sha256", owned, "hex").slice(0, 16)}_${name}`;
    };
    const statusOf = async (name: string) => {
      const headers = { "mcp-session-id": idOf(name), "mcp-protocol-version": LEGACY };
      return (await postMcp(url, alice.token, LIST, { headers })).status;
    };
    expect([await statusOf("n"), await statusOf("n".repeat(2_000))]).toEqual([200, 404]);
  });

  test("survives a message between gateways that none of this version sends", async () => {
    const { url, alice, gateway } = await start();
    const { list } = await open(url, alice.token);
    const { bus } = gateway.broker;
    for (const text of ["{", "1", '{"owner":1}']) await bus.publish(keys.mcpMessages, text);
    expect((await list()).status).toBe(200);
  });

  test("delegates once when a request is retried", async () => {
    const { url, alice, another } = await start();
    const scout = await as(url, "agent:scout");
    await scout.agent("scout");
    const { session } = await open(url, alice.token);
    const other = await open(url, alice.token);
    const elsewhere = (await another()).url;
    const delegate = async (headers: Record<string, string>, id: number, task = "once", at = url) => {
      const params = { name: "delegate_task_async", arguments: { agent: "scout", task } };
      const { body } = await postMcp(
        at,
        alice.token,
        { jsonrpc: "2.0", id, method: "tools/call", params },
        { headers },
      );
      return body.result.structuredContent.delegation_id;
    };
    const first = await delegate(session, 5);
    expect(await delegate(session, 5)).toBe(first);
    expect(await delegate(session, 5, "once", elsewhere)).toBe(first);
    const ids = [
      await delegate(session, 6),
      await delegate(session, 5, "more"),
      await delegate(other.session, 5),
    ];
    expect(new Set([first, ...ids]).size).toBe(4);
  });
});

test("without a session, a unique request id identifies a retry, a counter does not", async () => {
  const { url } = await startBroker();
  const alice = await as(url, "caller:alice");
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const params = { name: "delegate_task_async", arguments: { agent: "scout", task: "once" } };
  const delegate = async (id: string | number) => {
    const { body } = await requestModern(url, alice.token, "tools/call", params, { id });
    return body.result.structuredContent.delegation_id;
  };
  expect(await delegate(1)).not.toBe(await delegate(1));
  const id = "0b9a4e7c-6b1f-4a61-9a44-3d0f8f6f9d10";
  expect(await delegate(id)).toBe(await delegate(id));
});

test.each<[string, (url: string, token: string) => Promise<unknown>]>([
  ["modern", (url, token) => mcpClient(url, token, "modern" satisfies Era)],
  ["legacy", (url, token) => mcpClient(url, token, "legacy" satisfies Era)],
  ["first", firstClient],
])("the %s client gets a 401 error for an invalid token", async (_name, connect) => {
  const { url } = await startBroker();
  await expect(connect(url, "wrong")).rejects.toThrow();
});
