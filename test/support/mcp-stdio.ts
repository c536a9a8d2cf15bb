/**
 * `errand mcp` as MCP clients start it: with the SDK's clients of both generations, and with raw lines. Needs a build.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { onTestFinished } from "vitest";
import { type Era, MODERN } from "./mcp.ts";
import { freshDir } from "./program.ts";
import type { Rpc } from "./tasks-client.ts";
import { until } from "./until.ts";

const MAIN = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));

export interface Broker {
  readonly url: string;
  readonly token: string;
}

const parameters = ({ url, token }: Broker) => ({
  command: process.execPath,
  args: [MAIN, "mcp"],
  env: { PATH: process.env.PATH ?? "", ERRAND_URL: url, ERRAND_TOKEN: token },
  stderr: "ignore" as const,
});

export async function stdioClient(broker: Broker, era: Era) {
  const client = new Client(
    { name: "test", version: "1" },
    { versionNegotiation: { mode: era === "modern" ? { pin: MODERN } : "legacy" } },
  );
  await client.connect(new StdioClientTransport(parameters(broker)));
  onTestFinished(() => client.close());
  return client;
}

export async function firstStdioClient(broker: Broker) {
  const client = new FirstClient({ name: "first", version: "1" });
  await client.connect(new FirstTransport(parameters(broker)));
  onTestFinished(() => client.close());
  return client;
}

/** The program with raw lines on stdin. */
export function mcpLines(broker: Partial<Broker>) {
  const { PATH = "" } = process.env;
  const child = spawn(process.execPath, [MAIN, "mcp"], {
    cwd: freshDir(),
    env: {
      PATH,
      ...(broker.url !== undefined && { ERRAND_URL: broker.url }),
      ...(broker.token !== undefined && { ERRAND_TOKEN: broker.token }),
    },
  });
  const closed = once(child, "close");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await closed;
  });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  // Untyped: each test states what it expects on the wire.
  const messages: ReturnType<typeof JSON.parse>[] = [];
  // Not readline, which may break lines at U+2028.
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) messages.push(JSON.parse(line));
  });
  let lastId = 0;
  const write = (line: string) => child.stdin.write(`${line}\n`);
  const answerTo = (id: unknown) =>
    until(() => messages.find((message) => message.id === id && message.method === undefined), {
      what: `the answer to ${id}`,
      timeoutMs: 30_000,
    });
  return {
    child,
    messages,
    write,
    answerTo,
    stderr: () => stderr,
    send: (message: object) => write(JSON.stringify({ jsonrpc: "2.0", ...message })),
    /** Sends a raw request; returns its answer. */
    ask: (request: {
      readonly id?: unknown;
      readonly method: string;
      readonly params?: object;
    }): Promise<Rpc> => {
      lastId += 1;
      const { id = lastId } = request;
      write(JSON.stringify({ jsonrpc: "2.0", ...request, id }));
      return answerTo(id);
    },
    ended: async () => {
      await closed;
      return child.exitCode ?? child.signalCode;
    },
  };
}

/** The `_meta` of a 2026-07-28 request. */
export const modernMeta = (capabilities: object = {}) => ({
  "io.modelcontextprotocol/protocolVersion": MODERN,
  "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": capabilities,
});
