/** MCP clients for tests: the SDK's own, in both eras, and the first generation's. Limit: HTTP only. */
import { Client, type ClientCapabilities, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport as FirstInterface } from "@modelcontextprotocol/sdk/shared/transport.js";
import { expect, onTestFinished } from "vitest";

export type Era = "modern" | "legacy";
export const MODERN = "2026-07-28";

export interface ClientOptions {
  readonly capabilities?: ClientCapabilities;
  readonly fetch?: typeof fetch;
}

/** A client of the second generation that speaks this era and no other. */
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
  // Its own class does not fit its own interface where optional is not undefined.
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

/** What a tool answered: its data, its text and whether it is an error. */
export function answered(result: Record<string, unknown>) {
  const { content, structuredContent, isError = false } = result;
  expect(content).toEqual([{ type: "text", text: expect.any(String) }]);
  const [{ text }] = JSON.parse(JSON.stringify(content));
  return {
    text: String(text),
    isError: isError === true,
    data: JSON.parse(JSON.stringify(structuredContent ?? {})),
  };
}
