/** direct.ts and Hono give the same responses to the same odd requests. */
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import { createHttpApp } from "../../../src/doors/http/app.ts";
import { createDirectHandler } from "../../../src/doors/http/direct.ts";
import { listen } from "../../../src/doors/http/listener.ts";
import { Pipeline } from "../../../src/doors/http/pipeline.ts";
import type { RawInput, Route } from "../../../src/doors/http/route.ts";
import { noContent } from "../../../src/doors/http/text-response.ts";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

setFlagsFromString("--expose-gc");
const gc: () => void = runInNewContext("gc");

const AUTH = `Authorization: Bearer ${OPERATOR}`;
const HOST = "Host: localhost";
const head = (line: string, ...headers: string[]) => `${[line, ...headers].join("\r\n")}\r\n\r\n`;
const get = (path: string, ...more: string[]) => head(`GET ${path} HTTP/1.1`, HOST, AUTH, ...more);
const post = (path: string, body: string, ...more: string[]) =>
  `${head(`POST ${path} HTTP/1.1`, HOST, AUTH, "Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`, ...more)}${body}`;

async function setup() {
  const { gateway, url } = await startBroker();
  const api = client(url);
  // Requests read one agent and poll for another, because a poll changes the presence.
  await api.agent("idle");
  await api.agent("scout");
  const finished = (await api.delegate("idle")).body.id;
  await api.call("POST", `/v1/delegations/${finished}/cancel`, {});
  const { broker } = gateway;
  const options = {
    broker,
    host: "127.0.0.1",
    maxBodyBytes: 10_000,
    allowedOrigins: ["https://ops.example"],
    stopping: new AbortController().signal,
    signer: null,
    readiness: async () => ({ status: "ready" as const }),
  };
  const apps = [createHttpApp(options), createHttpApp({ ...options, direct: false })];
  const listeners = await Promise.all(
    apps.map((app) => listen(app, { host: "127.0.0.1", port: 0, now: () => 0 })),
  );
  onTestFinished(async () => void (await Promise.all(listeners.map((listener) => listener.close(0)))));
  return { api, broker, finished, ports: listeners.map(({ port }) => port) };
}

/** Everything received until the server closes. */
async function sendBytes(port: number, bytes: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  let text = "";
  socket.setEncoding("latin1").on("data", (chunk) => {
    text += chunk;
  });
  socket.on("error", () => {});
  const closed = once(socket, "close");
  socket.write(Buffer.from(bytes, "latin1"));
  await closed;
  return text;
}

/** Without values that always differ, and with headers in any order and case. */
function comparable(text: string): string {
  return text
    .replaceAll(/req_\w{16}/g, "<id>")
    .replaceAll(/retry: \d{4}/g, "retry: <ms>")
    .replaceAll("HTTP/1.1 ", "\r\n\r\nHTTP/1.1 ")
    .split("\r\n\r\n")
    .map((part) => {
      if (!part.startsWith("HTTP/")) return part;
      const [status, ...headers] = part.split("\r\n");
      const kept = headers.map((line) => line.toLowerCase()).filter((line) => !line.startsWith("date:"));
      return [status, ...kept.sort()].join("\n");
    })
    .join("\n\n");
}

const CLOSE = "Connection: close";
const LIST = "/v1/agents";
const ONE = "/v1/agents/idle";
const CANCEL = "/v1/delegations/dlg_0_00000000000000000000000000/cancel";
const NOW = '{"wait_seconds":0}';
const LEASES = "/v1/agents/scout/leases";

const REQUESTS: Record<string, string> = {
  plain: get(ONE, CLOSE),
  head: head(`HEAD ${ONE} HTTP/1.1`, HOST, AUTH, CLOSE),
  options: head(`OPTIONS ${ONE} HTTP/1.1`, HOST, AUTH, CLOSE),
  preflight: head(
    `OPTIONS ${ONE} HTTP/1.1`,
    HOST,
    "Origin: https://ops.example",
    "Access-Control-Request-Method: PUT",
    CLOSE,
  ),
  "an allowed origin": get(ONE, "Origin: https://ops.example", CLOSE),
  "a foreign origin": get(ONE, "Origin: https://evil.example", CLOSE),
  "a malformed host": head(`GET ${ONE} HTTP/1.1`, "Host: local host", AUTH, CLOSE),
  "a foreign host": head(`GET ${ONE} HTTP/1.1`, "Host: evil.example", AUTH, CLOSE),
  "an error for an allowed origin": get("/v1/agents/nobody", "Origin: https://ops.example", CLOSE),
  "no token": head(`GET ${ONE} HTTP/1.1`, HOST, CLOSE),
  "another scheme": head(`GET ${ONE} HTTP/1.1`, HOST, "Authorization: Basic YTpi", CLOSE),
  "no such path": get("/v1/nothing", CLOSE),
  "no such method": head(`PATCH ${ONE} HTTP/1.1`, HOST, AUTH, CLOSE),
  "a trailing slash": get(`${ONE}/`, CLOSE),
  "a trailing slash after a list": get(`${LIST}/`, CLOSE),
  "two slashes": get("/v1//agents/idle", CLOSE),
  "two leading slashes": get("//v1/agents/idle", CLOSE),
  "an empty query": get(`${ONE}?`, CLOSE),
  "an unknown parameter": get(`${ONE}?a=1`, CLOSE),
  "a parameter twice": get("/v1/delegations?limit=1&limit=2", CLOSE),
  "a parameter without a name": get("/v1/delegations?=x", CLOSE),
  "only ampersands": get("/v1/delegations?&&", CLOSE),
  "a parameter without a value": get("/v1/delegations?limit", CLOSE),
  "a plus": get("/v1/delegations?target=a+b", CLOSE),
  "an escape in the query": get("/v1/delegations?target=%73cout", CLOSE),
  "a broken escape": get("/v1/delegations?target=%zz", CLOSE),
  "a second question mark": get("/v1/delegations?target=a?b", CLOSE),
  "an escaped path": get("/v1/agents/%69dle", CLOSE),
  "an escaped slash": get("/v1/agents/a%2fb", CLOSE),
  dots: get("/v1/agents/../agents/idle", CLOSE),
  "dots for a name": get("/v1/agents/..", CLOSE),
  "dots for a name, within": post("/v1/agents/../leases", "{}", CLOSE),
  "a dot for a name": get("/v1/agents/.", CLOSE),
  "a fragment": get(`${ONE}#x`, CLOSE),
  "a fragment after a query": get("/v1/delegations?target=scout#x", CLOSE),
  "the prototype": get("/v1/delegations?__proto__=1", CLOSE),
  "a constructor": get("/v1/delegations?constructor=1", CLOSE),
  "an inherited name twice": get("/v1/delegations?toString=1&toString=2", CLOSE),
  "an absolute form": get(`http://localhost${ONE}`, CLOSE),
  "no host": head(`GET ${ONE} HTTP/1.0`, AUTH),
  "HTTP/1.0": head(`GET ${ONE} HTTP/1.0`, HOST, AUTH),
  "a body": post(LEASES, NOW, CLOSE),
  "an empty body": post(CANCEL, "", CLOSE),
  "broken JSON": post(LEASES, "{", CLOSE),
  "not JSON":
    head(`POST ${LEASES} HTTP/1.1`, HOST, AUTH, "Content-Type: text/plain", "Content-Length: 2", CLOSE) +
    "{}",
  "broken UTF-8": `${post(LEASES, '{"worker_id":"', CLOSE).replace("Content-Length: 14", "Content-Length: 15")}\xff`,
  "a body of a GET": `${head(`GET ${ONE} HTTP/1.1`, HOST, AUTH, "Content-Length: 2", CLOSE)}{}`,
  "in chunks": `${head(`POST ${LEASES} HTTP/1.1`, HOST, AUTH, "Transfer-Encoding: chunked", CLOSE)}12\r\n${NOW}\r\n0\r\n\r\n`,
  "too large": post(LEASES, `{"worker_id":"${"x".repeat(20_000)}"}`, CLOSE),
  "expecting 100": post(LEASES, NOW, "Expect: 100-continue", CLOSE),
  "expecting the impossible": post(LEASES, "{}", "Expect: miracles", CLOSE),
  upgrade: get(ONE, "Upgrade: h2c", "Connection: Upgrade, close"),
  "letters beyond ASCII": get("/v1/agents/\xe9", CLOSE),
  "a backslash": get("/v1\\agents\\idle", CLOSE),
  "one after the other": get(ONE) + post(LEASES, NOW) + get("/v1/agents/nobody") + get(ONE, CLOSE),
};

const ORIGIN = "Origin: https://ops.example";
const SSE = "Accept: text/event-stream";

/** Requests for the events of a finished delegation. */
function streamRequests(id: string): Record<string, string> {
  const path = `/v1/delegations/${id}/events`;
  return {
    "a stream": get(path, SSE, CLOSE),
    "a stream without Accept": get(path, CLOSE),
    "a stream that stays connected": get(path, SSE) + get(ONE, CLOSE),
    "a stream after another request": get(ONE) + get(path, SSE, CLOSE),
    "a replay": get(`${path}?after=0`, SSE, CLOSE),
    "a replay by header": get(path, SSE, "Last-Event-ID: 0", CLOSE),
    "a broken cursor": get(path, SSE, "Last-Event-ID: x", CLOSE),
    "a stream for an allowed origin": get(path, SSE, ORIGIN, CLOSE),
    "a stream for a foreign origin": get(path, SSE, "Origin: https://evil.example", CLOSE),
    "a stream at a malformed host": head(`GET ${path} HTTP/1.1`, "Host: local host", AUTH, SSE, CLOSE),
    "a stream without a token": head(`GET ${path} HTTP/1.1`, HOST, SSE, CLOSE),
    "a stream by HTTP/1.0": head(`GET ${path} HTTP/1.0`, HOST, AUTH, SSE),
    "a stream by HEAD": head(`HEAD ${path} HTTP/1.1`, HOST, AUTH, SSE, CLOSE),
    "a live stream by HEAD": head("HEAD /v1/events HTTP/1.1", HOST, AUTH, SSE, CLOSE),
    "a preflight of a stream": head(
      `OPTIONS ${path} HTTP/1.1`,
      HOST,
      ORIGIN,
      "Access-Control-Request-Method: GET",
      CLOSE,
    ),
    "events as JSON": get(`${path}?after=0`, "Accept: application/json", CLOSE),
    "no stream of an unknown delegation": get(
      "/v1/delegations/dlg_0_00000000000000000000000000/events",
      CLOSE,
    ),
    "an unknown filter": get("/v1/events?colour=red", SSE, CLOSE),
  };
}

test("odd requests are answered and counted alike", async () => {
  const { ports, broker, finished } = await setup();
  const differ: Record<string, unknown> = {};
  const counts = async () =>
    (await broker.metrics.text()).split("\n").filter((line) => /^errand_http_requests/.test(line));
  for (const [name, bytes] of Object.entries({ ...REQUESTS, ...streamRequests(finished) })) {
    const answers: string[] = [];
    for (const port of ports) {
      const before = await counts();
      const text = comparable(await sendBytes(port, bytes));
      const grown = (await counts())
        .filter((line) => !before.includes(line))
        .map((line) => line.replace(/ \d+$/, ""));
      answers.push(`${text}\n--\n${grown.join("\n")}`);
    }
    if (answers[0] !== answers[1]) differ[name] = answers;
  }
  expect(differ).toEqual({});
}, 120_000);

test("live streams are alike", async () => {
  const { ports, broker, api } = await setup();
  const open = async () => Number(/^errand_event_streams (\d+)/m.exec(await broker.metrics.text())?.[1]);
  const texts = ports.map(() => "");
  const sockets = ports.map((port, at) => {
    const socket = connect(port, "127.0.0.1").setEncoding("latin1");
    onTestFinished(() => void socket.destroy());
    socket.on("data", (chunk) => {
      texts[at] += String(chunk);
    });
    socket.write(get("/v1/events", SSE, ORIGIN));
    return socket;
  });
  await until(async () => (await open()) === 2 && texts.every((text) => text.includes("retry:")));
  const { id } = (await api.delegate("scout", { task: "€".repeat(30_000) })).body;
  await api.call("POST", `/v1/delegations/${id}/cancel`, {});
  await until(() => texts.every((text) => text.includes("event: DELEGATION_FAILED")));
  for (const socket of sockets) socket.destroy();
  await until(async () => (await open()) === 0);
  expect(texts[0]).toContain("HTTP/1.1 200 OK");
  expect(comparable(texts[0] ?? "")).toBe(comparable(texts[1] ?? ""));
});

test("a request that waits does not retain its input", async () => {
  const { gateway } = await startBroker();
  let input: WeakRef<RawInput> | undefined;
  let answer = () => {};
  const route: Route = {
    method: "POST",
    path: "/wait",
    summary: "Responds when the test says so.",
    schemas: {},
    responses: {},
    run(request, raw) {
      input = new WeakRef(raw);
      // As a request does that begins to wait.
      request.endTurn();
      return new Promise((resolve) => {
        answer = () => resolve(noContent());
      });
    },
  };
  const pipeline = new Pipeline({
    broker: gateway.broker,
    host: "127.0.0.1",
    maxBodyBytes: 1_000,
    allowedOrigins: [],
    stopping: new AbortController().signal,
  });
  const direct = createDirectHandler(pipeline, [route]);
  const server = createServer((request, response) => void direct(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const socket = connect(typeof address === "object" && address ? address.port : 0, "127.0.0.1");
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  socket.write(post("/wait", '{"text":"large"}'));
  await until(() => input !== undefined);
  await until(() => {
    gc();
    return input?.deref() === undefined;
  });
  const [answered] = await Promise.all([once(socket, "data"), answer()]);
  expect(String(answered)).toMatch(/^HTTP\/1.1 204 /);
});
