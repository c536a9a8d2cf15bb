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
  /** Answers the calls instead of the server. */
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
      if (script.call) return script.call(outgoing, body);
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
      expect(reason, `${name}, ${by}`).toContain(said);
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
