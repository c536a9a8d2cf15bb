/**
 * Servers that do not speak A2A well: garbage, endless answers. Each fails the delegation with the relay's own text.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import { LIMITS } from "../../src/schema/limits.ts";
import { client, startBroker } from "../support/broker.ts";
import { startRelaying, watching } from "../support/relaying.ts";

vi.setConfig({ testTimeout: 120_000 });

type Json = ReturnType<typeof JSON.parse>;

/** A server with a card; `answer` handles its calls. */
async function setup(
  answer: (body: Json, outgoing: ServerResponse, incoming: IncomingMessage) => void,
  streaming = true,
  delivery: "relay" | "push" = "relay",
) {
  const elsewhere: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const at = `http://${incoming.headers.host}`;
      if (incoming.url === "/.well-known/agent-card.json") {
        const supportedInterfaces = [
          { url: `${at}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        ];
        const lists = { skills: [], defaultInputModes: ["text"], defaultOutputModes: ["text"] };
        outgoing.setHeader("content-type", "application/json");
        const names = { name: "x", description: "x", version: "1" };
        outgoing.end(
          JSON.stringify({ ...names, capabilities: { streaming }, supportedInterfaces, ...lists }),
        );
      } else if (incoming.url === "/rpc") {
        answer(JSON.parse(Buffer.concat(chunks).toString()), outgoing, incoming);
      } else {
        elsewhere.push(incoming.url ?? "");
        outgoing.end("{}");
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  const { url } = await startBroker({ callbackAllow: ["127.0.0.1"] });
  const api = client(url);
  const to = `http://127.0.0.1:${port}`;
  const limits = { max_attempts: 1 };
  await api.agent(
    "remote",
    delivery === "push" ? { limits, delivery: { mode: "push", url: to } } : { limits },
  );
  const relayed = delivery === "relay" ? startRelaying(url, "remote", to) : { notes: [], events: [] };
  return { api, relayed, elsewhere, ...watching(api) };
}

const result = (outgoing: ServerResponse, { id }: Json, value: object) => {
  outgoing.setHeader("content-type", "application/json");
  outgoing.end(JSON.stringify({ jsonrpc: "2.0", id, result: value }));
};
const events = (outgoing: ServerResponse, { id }: Json, ...values: object[]) => {
  outgoing.writeHead(200, { "content-type": "text/event-stream" });
  for (const value of values) {
    outgoing.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result: value })}\n\n`);
  }
  outgoing.end();
};
const task = (state: string, more: object = {}) => ({
  id: "t-1",
  contextId: "c-1",
  status: { state: `TASK_STATE_${state}` },
  ...more,
});

test.each<[string, (body: Json, outgoing: ServerResponse) => void, string]>([
  ["an empty result", (body, out) => result(out, body, {}), "remote_answer_unreadable"],
  [
    "an error of its own",
    (body, out) => {
      out.setHeader("content-type", "application/json");
      out.end(
        JSON.stringify({ jsonrpc: "2.0", id: body.id, error: { code: -32603, message: "canary at /srv" } }),
      );
    },
    "remote_error",
  ],
  [
    "an endless answer",
    (_, out) => {
      out.writeHead(200, { "content-type": "application/json" });
      const more = () => {
        while (out.write("x".repeat(1_000_000)));
      };
      out.on("drain", more);
      more();
    },
    "remote_answer_unreadable",
  ],
])("%s", async (_name, answer, code) => {
  for (const streaming of [true, false]) {
    const { api, delegate, ended, relayed, elsewhere } = await setup(answer, streaming);
    const id = await delegate("x");
    const done = await ended(id);
    expect(done).toMatchObject({ state: "failed", error: { code } });
    const all = JSON.stringify([done, (await api.events(id)).body, relayed.notes, relayed.events]);
    expect(all).not.toContain("canary");
    expect(elsewhere).toEqual([]);
  }
});

test.each(["relay", "push"] as const)(
  "an answer that the broker refuses fails the delegation: %s",
  async (by) => {
    const parts = Array.from({ length: LIMITS.parts.value + 1 }, () => ({ text: "a" }));
    const message = { messageId: "m", role: "ROLE_AGENT", parts };
    const { delegate, ended } = await setup((body, out) => result(out, body, { message }), false, by);
    const { state, error } = await ended(await delegate("x"));
    expect([state, error.code]).toEqual(["failed", "invalid_request"]);
    expect(error.message).toContain("message.parts: ");
  },
);

test("updates after the end are ignored, and a stream that ends early is followed by a read of the task", async () => {
  let looks = 0;
  const { delegate, ended, api } = await setup((body, out) => {
    if (body.method === "SendStreamingMessage") return events(out, body, { task: task("WORKING") });
    if (body.method === "SubscribeToTask" && looks < 3) return events(out, body, { task: task("WORKING") });
    if (body.method === "GetTask") {
      looks += 1;
      return result(out, body, task("WORKING", { status: { state: "TASK_STATE_WORKING" } }));
    }
    const status = (state: string, text: string) => ({
      statusUpdate: {
        taskId: "t-1",
        contextId: "c-1",
        status: {
          state: `TASK_STATE_${state}`,
          message: { messageId: text, role: "ROLE_AGENT", parts: [{ text }] },
        },
      },
    });
    return events(out, body, status("COMPLETED", "first"), status("FAILED", "second"), {
      artifactUpdate: {
        taskId: "t-1",
        contextId: "c-1",
        artifact: { artifactId: "late", parts: [{ text: "late" }] },
      },
    });
  });
  const id = await delegate("x");
  expect(await ended(id)).toMatchObject({ state: "completed", reply: { parts: [{ text: "first" }] } });
  expect((await api.get(id)).body.artifacts).toEqual([]);
});
