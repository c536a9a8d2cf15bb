/**
 * Something else answers in place of the A2A server: an ingress, a maintenance page, a proxy. Only an answer to the
 * request itself is final; work that was not sent waits, at no cost of an attempt.
 */
import { createServer, type ServerResponse } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { startRelaying, watching } from "../support/relaying.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 120_000 });

type Json = ReturnType<typeof JSON.parse>;
type Answer = (outgoing: ServerResponse, body: Json) => void;

const json = (outgoing: ServerResponse, value: unknown) =>
  outgoing.setHeader("content-type", "application/json").end(JSON.stringify(value));
const plain =
  (status: number, text: string, headers: Record<string, string> = {}): Answer =>
  (outgoing) =>
    outgoing.writeHead(status, { "content-type": "text/plain", ...headers }).end(text);

interface Script {
  /** Answers for the card instead of the server. */
  card?: Answer | undefined;
  /** Answers the calls with a message instead of the server. */
  call?: Answer | undefined;
  cardPath?: string;
  streaming?: boolean;
  version?: "1.0" | "0.3";
}

/** An A2A server that a script replaces at times. */
async function startServer(script: Script) {
  const seen: string[] = [];
  const headers: (string | undefined)[] = [];
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      headers.push(incoming.headers.authorization);
      const at = `http://${incoming.headers.host}/rpc`;
      if (incoming.method === "GET") {
        seen.push(incoming.url ?? "");
        if (script.card) return script.card(outgoing, undefined);
        if (incoming.url !== (script.cardPath ?? "/.well-known/agent-card.json"))
          return plain(404, "none here")(outgoing, undefined);
        return json(outgoing, cardOf(at, script));
      }
      const body: Json = JSON.parse(Buffer.concat(chunks).toString());
      seen.push(body.method);
      if (script.call && isSend(body.method)) return script.call(outgoing, body);
      return json(outgoing, { jsonrpc: "2.0", id: body.id, result: doneAs(script, body.method) });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  return { url: `http://127.0.0.1:${port}`, seen, headers };
}

function cardOf(url: string, { version = "1.0", streaming = false }: Script): object {
  const lists = { skills: [], defaultInputModes: ["text"], defaultOutputModes: ["text"] };
  const names = { name: "x", description: "x", version: "1", capabilities: { streaming }, ...lists };
  return version === "0.3"
    ? { ...names, protocolVersion: "0.3.0", url, preferredTransport: "JSONRPC" }
    : { ...names, supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }] };
}

function doneAs({ version = "1.0" }: Script, method: string): object {
  if (version === "0.3") {
    const artifacts = [{ artifactId: "a", parts: [{ kind: "text", text: "done" }] }];
    return { kind: "task", id: "t-1", contextId: "c-1", status: { state: "completed" }, artifacts };
  }
  const artifacts = [{ artifactId: "a", parts: [{ text: "done" }] }];
  const task = { id: "t-1", contextId: "c-1", status: { state: "TASK_STATE_COMPLETED" }, artifacts };
  if (method === "ListTasks") return { tasks: [], nextPageToken: "", pageSize: 50, totalSize: 0 };
  return method === "GetTask" ? task : { task };
}

/** One broker with an agent for each server: with `errand relay`, or as a push agent. */
async function startWorld() {
  const broker = await startBroker({ callbackAllow: ["127.0.0.1"] });
  const api = client(broker.url);
  let count = 0;
  const serve = async (script: Script, by: "relay" | "push", headers: Record<string, string> = {}) => {
    const server = await startServer(script);
    count += 1;
    const name = `agent-${count}`;
    const delivery = { mode: "push", url: server.url };
    const limits = { max_attempts: 3, backoff: { initial_ms: 0 } };
    await api.agent(name, {
      limits: { max_attempts: limits.max_attempts },
      ...(by === "push" && { delivery }),
    });
    if (by === "relay") startRelaying(broker.url, name, server.url, { headers });
    const id: string = (await api.delegate(name, { task: "x" })).body.id;
    const released = () =>
      until(async () => {
        const { events } = (await api.events(id)).body;
        return events.find((event: Json) => event.status === "released");
      });
    return { ...server, name, id, released, delivery };
  };
  return { ...broker, api, serve, ...watching(api) };
}

const CARDS: [string, Answer, string][] = [
  ["404 of a default backend", plain(404, "default backend"), "HTTP 404, text/plain, 'default backend'"],
  [
    "a maintenance page",
    plain(200, "<html><h1>be right\n\u001b[2Jback</h1></html>", { "content-type": "text/html" }),
    "HTTP 200, text/html, 'be right back'",
  ],
  ["a redirect", plain(302, "", { location: "/elsewhere" }), "HTTP 302, text/plain, an empty body"],
  ["an empty answer", plain(200, ""), "HTTP 200, text/plain, an empty body"],
  ["a broken gateway", plain(502, "bad gateway"), "HTTP 502"],
  ["a proxy that wants a password", plain(407, "who?"), "HTTP 407"],
  ["JSON of something else", (out) => json(out, { status: "ok" }), "is not valid"],
];

test("work waits whatever answers for the card, with a relay and with a push agent", async () => {
  const world = await startWorld();
  const runs = CARDS.flatMap(([name, card, said]) =>
    (["relay", "push"] as const).map(async (by) => {
      const script: Script = { card };
      const {
        id,
        released,
        seen,
        headers,
        name: agent,
        delivery,
      } = await world.serve(script, by, {
        authorization: "Bearer s3cret",
      });
      const { reason } = await released();
      const target = /, a redirect to http:\/\/127\.0\.0\.1:\d+\/elsewhere/;
      expect(reason.replace(target, ""), `${name}, ${by}`).toContain(said);
      expect(target.test(reason)).toBe(name === "a redirect" && by === "relay");
      // Delegators may not see the address of a push agent.
      if (by === "push") expect(reason).not.toContain("127.0.0.1");
      else if (said.startsWith("HTTP 4") && !said.includes("407"))
        expect(reason).toMatch(/http:\/\/127\.0\.0\.1:\d+\/\.well-known\/agent-card\.json /);
      expect((await world.api.get(id)).body).toMatchObject({ state: "submitted", attempt: 1, error: null });
      expect(seen).not.toContain("/elsewhere");
      if (by === "relay") expect(headers).toContain("Bearer s3cret");
      script.card = undefined;
      return { id, name, by, agent, delivery };
    }),
  );
  const waiting = await Promise.all(runs);
  // Past the delays of the releases.
  world.clock.offset_ms += 120_000;
  for (const { id, name, by, agent, delivery } of waiting) {
    // A relay pauses for seconds; the change of a push agent ends its pause.
    if (by === "relay") continue;
    await world.api.agent(agent, { delivery, description: "changed" });
    expect(await world.ended(id), name).toMatchObject({ state: "completed", attempt: 1 });
  }
});

test("a push agent without a valid card says so in its presence", async () => {
  const world = await startWorld();
  const { name } = await world.serve({ card: plain(404, "nothing") }, "push");
  const paused = await until(
    async () => (await world.api.call("GET", `/v1/agents/${name}`)).body.presence.paused,
  );
  expect(paused.reason).toBe("its A2A server has no valid agent card");
});

test("the card of older servers is found", async () => {
  const world = await startWorld();
  const { id, seen } = await world.serve({ cardPath: "/.well-known/agent.json", version: "0.3" }, "relay");
  expect(await world.ended(id)).toMatchObject({ state: "completed", attempt: 1 });
  expect(seen.slice(0, 2)).toEqual(["/.well-known/agent-card.json", "/.well-known/agent.json"]);
});

test("credentials that an answer repeats are not shown", async () => {
  const world = await startWorld();
  const card: Answer = plain(404, "you sent s3cret-canary");
  const { released } = await world.serve({ card }, "relay", { authorization: "Bearer s3cret-canary" });
  expect((await released()).reason).toContain("'you sent ***'");
});

const rpc = (id: unknown, value: object = {}): Answer => {
  return (out) => json(out, { jsonrpc: "2.0", id, ...value });
};
const ERROR = { error: { code: -32600, message: "what?" } };
const withStatus = (out: ServerResponse, status: number) => {
  out.statusCode = status;
  return out;
};
const isSend = (method: string) => /^(?:Send|message)/.test(method);
const sent = (seen: readonly string[]) => seen.filter(isSend).length;

/** What a call's answer does to the work. `waits`: released, no attempt spent; `unreadable`: failed by that name. */
const CALLS: [string, Answer, "waits" | "unreadable" | "completed"][] = [
  ["404", plain(404, "default backend"), "waits"],
  ["302", plain(302, "", { location: "/elsewhere" }), "waits"],
  ["308", plain(308, "", { location: "/elsewhere" }), "waits"],
  ["407", plain(407, ""), "waits"],
  ["408", plain(408, ""), "waits"],
  ["413", plain(413, "too large"), "waits"],
  ["421", plain(421, ""), "waits"],
  ["404 with JSON", (out) => json(withStatus(out, 404), { error: "no such route" }), "waits"],
  ["the error of another request", (out) => json(withStatus(out, 400), { id: 77_777, ...ERROR }), "waits"],
  ["a request that was not read", rpc(null, ERROR), "waits"],
  ["a page", plain(200, "<!doctype html><p>be right back", { "content-type": "text/html" }), "waits"],
  ["an empty answer", plain(200, ""), "unreadable"],
  ["half an answer", plain(200, '{"jsonrpc":', { "content-type": "application/json" }), "unreadable"],
  ["an answer to another request", rpc(77_777, { result: {} }), "unreadable"],
  [
    "the id as text",
    (out, { id }) => json(out, { jsonrpc: "2.0", id: String(id), result: doneAs({}, "") }),
    "completed",
  ],
];

test.each(CALLS)(
  "only an answer to the message is final, and after a success the message is not sent again: %s",
  async (_name, call, end) => {
    const world = await startWorld();
    const ways = (["relay", "push"] as const).flatMap((by) =>
      [true, false].map((streaming) => ({ by, streaming })),
    );
    const runs = ways.map(async ({ by, streaming }) => {
      const { id, released, seen } = await world.serve({ call, streaming }, by);
      if (end === "waits") {
        const { reason } = await released();
        expect(reason, by).toMatch(/HTTP \d\d\d/);
        // A later try may be under way by now.
        expect((await world.api.get(id)).body, by).toMatchObject({ finished_at: null, attempt: 1 });
      } else {
        const done = await world.ended(id);
        const code = end === "unreadable" ? { error: { code: "remote_answer_unreadable" } } : {};
        expect(done, by).toMatchObject({ state: end === "completed" ? end : "failed", attempt: 1, ...code });
        expect(done.error?.message ?? "HTTP 200", by).toContain("HTTP 200");
      }
      if (end !== "waits") expect(sent(seen), by).toBe(1);
      expect(seen).not.toContain("/elsewhere");
    });
    await Promise.all(runs);
  },
);

test.each(["1.0", "0.3"] as const)(
  "a timeout on the way costs an attempt only once the server answers (A2A %s)",
  async (version) => {
    const world = await startWorld();
    const script: Script = { version };
    script.call = (out, body) => {
      script.call = undefined;
      plain(504, "timeout")(out, body);
    };
    const { id, seen } = await world.serve(script, "relay");
    expect(await world.ended(id)).toMatchObject({ state: "completed", attempt: 2 });
    expect(sent(seen)).toBe(2);
    // A call that changes nothing, between the two.
    expect(seen.slice(-3)).toContain(version === "0.3" ? "tasks/get" : "GetTask");
  },
);

interface Shape {
  readonly end?: string;
  readonly type?: string;
  readonly textId?: boolean;
  readonly json?: boolean;
  readonly bytes?: number;
}
const SHAPES: [string, Shape][] = [
  ["lines that end in CR", { end: "\r" }],
  ["CR LF, in single bytes", { end: "\r\n", bytes: 1 }],
  ["a media type in capitals", { type: "Text/Event-Stream" }],
  ["a media type with a parameter", { type: "text/event-stream; charset=utf-8" }],
  ["text/plain", { type: "text/plain; charset=UTF-8" }],
  ["application/json", { type: "application/json" }],
  ["ids as text", { textId: true }],
  ["JSON instead of a stream", { json: true, type: "Application/JSON; charset=utf-8" }],
  ["JSON without a media type", { json: true, type: "" }],
];

test("streams of every shape are read, and the message is sent once", async () => {
  const world = await startWorld();
  const runs = SHAPES.flatMap(([name, { end = "\n", type = "text/event-stream", ...shape }], index) =>
    (["1.0", "0.3"] as const).map(async (version) => {
      const call: Answer = (out, { id, method }) => {
        const own = shape.textId ? String(id) : id;
        const answer = JSON.stringify({ jsonrpc: "2.0", id: own, result: doneAs({ version }, method) });
        if (type !== "") out.setHeader("content-type", type);
        const text = Buffer.from(shape.json ? answer : `: begin${end}${end}data: ${answer}${end}${end}`);
        const step = shape.bytes ?? text.length;
        for (let at = 0; at < text.length; at += step) out.write(text.subarray(at, at + step));
        out.end();
      };
      const by = index % 2 === 0 ? "relay" : "push";
      const { id, seen } = await world.serve({ call, version, streaming: true }, by);
      const done = await world.ended(id);
      expect(done, `${name}, ${version}`).toMatchObject({ state: "completed", attempt: 1 });
      expect(done.artifacts[0].parts).toEqual([{ text: "done" }]);
      expect(sent(seen), `${name}, ${version}`).toBe(1);
    }),
  );
  await Promise.all(runs);
});
