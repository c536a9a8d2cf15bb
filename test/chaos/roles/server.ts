/** The push agent's A2A server (JSON-RPC): answers a task with a message, sometimes late or not at all. */
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { keyOf } from "../setup.ts";
import type { Part } from "./part.ts";

const sendSchema = z.looseObject({
  id: z.union([z.string(), z.number()]),
  method: z.string(),
  params: z.looseObject({
    message: z
      .looseObject({
        contextId: z.string().optional(),
        parts: z.array(z.looseObject({ text: z.string().optional() })),
      })
      .optional(),
  }),
});

export async function runServer(part: Part): Promise<void> {
  const url = `http://127.0.0.1:${part.setup.serverPort}`;
  const card = {
    name: "pushed",
    description: "answers",
    version: "1",
    capabilities: { streaming: false },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [{ id: "answer", name: "answer", description: "answers", tags: ["answer"] }],
    supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  };
  const server = createServer(async (request, response) => {
    response.on("error", () => undefined);
    response.setHeader("content-type", "application/json");
    if (request.url?.startsWith("/.well-known/agent-card.json"))
      return void response.end(JSON.stringify(card));
    let body = "";
    for await (const chunk of request) body += chunk;
    const { id, method, params } = sendSchema.parse(JSON.parse(body));
    if (method !== "SendMessage" || params.message === undefined) {
      const error = { code: -32601, message: `${method} is not known` };
      return void response.end(JSON.stringify({ jsonrpc: "2.0", id, error }));
    }
    if (part.random.chance(0.05)) return void response.destroy();
    await sleep(part.random.between(0, part.random.chance(0.1) ? 2_000 : 50));
    const key = keyOf(params.message.parts[0]?.text ?? "");
    const message = {
      messageId: crypto.randomUUID(),
      role: "ROLE_AGENT",
      contextId: params.message.contextId,
      parts: [{ text: `completed ${key}` }],
    };
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: { message } }));
  });
  server.listen(part.setup.serverPort, "127.0.0.1");
  while (!part.finished) await part.sleep(500);
}
