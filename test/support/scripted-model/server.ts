/**
 * A scripted model on loopback that speaks the APIs of Anthropic (messages), OpenAI (chat completions, responses) and
 * Gemini (generateContent), as far as coding agents need them. Limit: one text or one tool call in an answer; no images.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { anthropic } from "./anthropic.ts";
import type { Api, Reply } from "./api.ts";
import { chat } from "./chat.ts";
import { gemini } from "./gemini.ts";
import { responses } from "./responses.ts";
import { type Item, nextTurn } from "./script.ts";

const APIS: readonly Api[] = [anthropic, chat, responses, gemini];

export interface ScriptedModel {
  readonly url: string;
  /** What was asked of it: the path, and what it did. */
  readonly log: readonly string[];
  /** Instructions by the plain sentences that stand for them, where people see what the model is told. */
  readonly meanings: Map<string, string>;
  readonly close: () => Promise<void>;
}

export async function startScriptedModel(): Promise<ScriptedModel> {
  const log: string[] = [];
  const meanings = new Map<string, string>();
  const server = createServer((request, response) => {
    void serve(request, response, meanings, (line) => log.push(line)).catch((error: unknown) => {
      log.push(String(error));
      response.destroy();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    log,
    meanings,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  meanings: ReadonlyMap<string, string>,
  log: (line: string) => void,
) {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const path = new URL(request.url ?? "/", "http://model").pathname;
  const body = parsed(Buffer.concat(chunks).toString("utf8"));
  const api = request.method === "POST" ? APIS.find((one) => one.path.test(path)) : undefined;
  if (api === undefined) {
    log(`${request.method} ${path}`);
    send(response, other(path));
    return;
  }
  const asked = api.read(body);
  const turn = nextTurn(meant(asked.items, meanings), asked.tools);
  log(`${path} ${JSON.stringify(turn)}`);
  const streams = asked.streams || /:stream/i.test(path);
  send(response, turn.kind === "fail" ? api.failed(turn.status) : api.write(turn, asked.model, streams));
}

/** The conversation, with an instruction in place of the first sentence that stands for one. */
const meant = (items: readonly Item[], meanings: ReadonlyMap<string, string>): Item[] =>
  items.map((item) => {
    const [sentence, instruction] = [...meanings].find(([known]) => item.text.includes(known)) ?? [];
    if (item.by !== "user" || sentence === undefined) return item;
    return { ...item, text: item.text.replace(sentence, () => `[[${instruction}]]`) };
  });

/** What programs look up besides: models, the length of a prompt, telemetry. */
function other(path: string): Reply {
  if (/count_?tokens$/i.test(path)) return { json: { input_tokens: 10, totalTokens: 10 } };
  if (path.endsWith("/models"))
    return { json: { object: "list", data: [{ id: "scripted", object: "model" }] } };
  return { json: {} };
}

function send(response: ServerResponse, { status = 200, headers = {}, json, events }: Reply): void {
  if (events === undefined) {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(json));
    return;
  }
  response.writeHead(status, { "content-type": "text/event-stream", ...headers });
  for (const { name, data } of events) {
    if (name !== undefined) response.write(`event: ${name}\n`);
    response.write(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  }
  response.end();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
