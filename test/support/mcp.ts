/** MCP clients for tests, over HTTP: the SDK's in both eras, and the first generation's. */
import { Client, type ClientCapabilities, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport as FirstInterface } from "@modelcontextprotocol/sdk/shared/transport.js";
import { expect, onTestFinished } from "vitest";

export type Era = "modern" | "legacy";
export const MODERN = "2026-07-28";
export const LEGACY = "2025-11-25";

export interface ClientOptions {
  readonly capabilities?: ClientCapabilities;
  readonly fetch?: typeof fetch;
}

/** A second-generation client of one era. */
export async function mcpClient(url: string, token: string, era: Era, options: ClientOptions = {}) {
  const client = new Client(
    { name: "test", version: "1" },
    {
      capabilities: options.capabilities ?? {},
      versionNegotiation: { mode: era === "modern" ? { pin: MODERN } : "legacy" },
    },
  );
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
    ...(options.fetch && { fetch: options.fetch }),
  });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return client;
}

export async function firstClient(url: string, token: string) {
  const client = new FirstClient({ name: "first", version: "1" });
  const http = new FirstTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  // The SDK's class does not match its own interface under exactOptionalPropertyTypes.
  const transport: FirstInterface = {
    start: () => http.start(),
    send: (message) => http.send(message),
    close: () => http.close(),
    setProtocolVersion: (version) => http.setProtocolVersion(version),
  };
  http.onmessage = (message) => transport.onmessage?.(message);
  http.onclose = () => transport.onclose?.();
  http.onerror = (error) => transport.onerror?.(error);
  await client.connect(transport);
  onTestFinished(() => client.close());
  return { client, http };
}

/** A tool's output: its data, its text and whether it is an error. */
export function toolOutput(result: Record<string, unknown>) {
  const { content, structuredContent, isError = false } = result;
  expect(content).toEqual([{ type: "text", text: expect.any(String) }]);
  const [{ text }] = JSON.parse(JSON.stringify(content));
  return {
    text: String(text),
    isError: isError === true,
    data: JSON.parse(JSON.stringify(structuredContent ?? {})),
  };
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  // Untyped: each test states what it expects on the wire.
  readonly body: ReturnType<typeof JSON.parse>;
  /** The messages before the answer. */
  readonly notes: ReturnType<typeof JSON.parse>[];
}

let lastId = 0;

interface PostOptions {
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

/** One POST to /mcp; the response is not read. */
export function sendMcp(
  url: string,
  token: string | null,
  body: unknown,
  options: PostOptions = {},
): Promise<Response> {
  return fetch(`${url}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...options.headers,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(options.signal && { signal: options.signal }),
  });
}

/** The answer to one POST to /mcp; in a stream, the last message. */
export async function postMcp(
  url: string,
  token: string | null,
  body: unknown,
  options: PostOptions = {},
): Promise<RawAnswer> {
  const response = await sendMcp(url, token, body, options);
  const text = await response.text();
  const isStream = response.headers.get("content-type")?.includes("event-stream") === true;
  const messages = isStream
    ? [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data ?? "null"))
    : [text === "" ? null : JSON.parse(text)];
  return {
    status: response.status,
    headers: response.headers,
    body: messages.at(-1),
    notes: messages.slice(0, -1),
  };
}

export const INITIALIZE = {
  jsonrpc: "2.0",
  id: "initialize",
  method: "initialize",
  params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: "raw", version: "1" } },
};

/** Opens a session; returns the headers for its requests. */
export async function openSession(url: string, token: string): Promise<{ "mcp-session-id": string }> {
  const { headers, status, body } = await postMcp(url, token, INITIALIZE);
  expect(status, JSON.stringify(body)).toBe(200);
  return { "mcp-session-id": headers.get("mcp-session-id") ?? "" };
}

/** A request of 2026-07-28, with its headers and `_meta`. */
export function requestModern(
  url: string,
  token: string | null,
  method: string,
  params: Record<string, unknown> = {},
  options: {
    readonly capabilities?: Record<string, unknown>;
    readonly id?: string | number;
    readonly signal?: AbortSignal;
    readonly headers?: Record<string, string>;
    readonly meta?: Record<string, unknown>;
  } = {},
): Promise<RawAnswer> {
  lastId += 1;
  const { capabilities = {}, id = lastId, signal, headers, meta } = options;
  const name = params.name ?? params.taskId;
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": capabilities,
    ...meta,
  };
  return postMcp(
    url,
    token,
    { jsonrpc: "2.0", id, method, params: { _meta, ...params } },
    {
      headers: {
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
        ...(typeof name === "string" && { "mcp-name": name }),
        ...headers,
      },
      ...(signal && { signal }),
    },
  );
}

export const TASKS_CAPABILITY = { extensions: { "io.modelcontextprotocol/tasks": {} } };

/** Calls a tool by a request of 2026-07-28. */
export const callModern = (
  url: string,
  token: string,
  name: string,
  args: Record<string, unknown>,
  options: Parameters<typeof requestModern>[4] & { readonly more?: Record<string, unknown> } = {},
) => requestModern(url, token, "tools/call", { name, arguments: args, ...options.more }, options);
