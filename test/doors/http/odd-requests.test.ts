/** Odd requests, byte by byte: what each is answered, and how it is counted. */
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import { createHttpApp } from "../../../src/doors/http/app.ts";
import { listen } from "../../../src/doors/http/listener.ts";
import { Pipeline } from "../../../src/doors/http/pipeline.ts";
import type { RawInput, Route } from "../../../src/doors/http/route.ts";
import { TableRequest } from "../../../src/doors/http/table-request.ts";
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
  const listener = await listen(createHttpApp(options), { host: "127.0.0.1", port: 0, now: () => 0 });
  onTestFinished(() => listener.close(0));
  return { api, broker, finished, port: listener.port };
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

/** The status of each response, the codes of errors, and what is in common headers. */
function summary(text: string): string {
  const words: string[] = [];
  for (const part of text.replaceAll("HTTP/1.1 ", "\r\n\r\nHTTP/1.1 ").split("\r\n\r\n")) {
    const [, status] = /^HTTP\/1.1 (\d+)/.exec(part) ?? [];
    if (status !== undefined) words.push(status);
    for (const [, header, value] of part.matchAll(/^(allow|access-control-allow-origin): (.*)$/gim))
      words.push(`${header?.toLowerCase()}: ${value}`);
    const [, code] = /"code":"(\w+)"/.exec(part) ?? [];
    if (code !== undefined) words.push(code);
  }
  return words.join(" ");
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
  "no such method": post(ONE, "{}", CLOSE),
  "no such method, though it could be an id": head("DELETE /v1/sessions/codes HTTP/1.1", HOST, AUTH, CLOSE),
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
    "events without Accept": get(path, CLOSE),
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

/** By request: the status, headers of its own and error code; then the method, route and status of the metrics. */
const ANSWERS: Record<string, readonly [response: string, counted: string]> = {
  plain: ["200", "GET /v1/agents/{agent} 200"],
  head: ["200", "HEAD /v1/agents/{agent} 200"],
  options: ["204 allow: GET, HEAD, PUT, PATCH, DELETE, OPTIONS", "OPTIONS other 204"],
  preflight: ["204 access-control-allow-origin: https://ops.example", "OPTIONS other 204"],
  "an allowed origin": ["200 access-control-allow-origin: https://ops.example", "GET /v1/agents/{agent} 200"],
  "a foreign origin": ["403 forbidden", "GET other 403"],
  "a malformed host": ["400 invalid_request", ""],
  "a foreign host": ["403 forbidden", "GET other 403"],
  "an error for an allowed origin": [
    "404 access-control-allow-origin: https://ops.example agent_unknown",
    "GET /v1/agents/{agent} 404",
  ],
  "no token": ["401 unauthenticated", "GET /v1/agents/{agent} 401"],
  "another scheme": ["401 unauthenticated", "GET /v1/agents/{agent} 401"],
  "no such path": ["404 not_found", "GET other 404"],
  "no such method": [
    "405 allow: GET, HEAD, PUT, PATCH, DELETE, OPTIONS method_not_allowed",
    "POST other 405",
  ],
  "no such method, though it could be an id": [
    "405 allow: POST, OPTIONS method_not_allowed",
    "DELETE other 405",
  ],
  "a trailing slash": ["404 not_found", "GET other 404"],
  "a trailing slash after a list": ["404 not_found", "GET other 404"],
  "two slashes": ["404 not_found", "GET other 404"],
  "two leading slashes": ["404 not_found", "GET other 404"],
  "an empty query": ["200", "GET /v1/agents/{agent} 200"],
  "an unknown parameter": ["400 invalid_request", "GET /v1/agents/{agent} 400"],
  "a parameter twice": ["400 invalid_request", "GET /v1/delegations 400"],
  "a parameter without a name": ["200 canceled", "GET /v1/delegations 200"],
  "only ampersands": ["200 canceled", "GET /v1/delegations 200"],
  "a parameter without a value": ["400 invalid_request", "GET /v1/delegations 400"],
  "a plus": ["400 invalid_request", "GET /v1/delegations 400"],
  "an escape in the query": ["200", "GET /v1/delegations 200"],
  "a broken escape": ["400 invalid_request", "GET /v1/delegations 400"],
  "a second question mark": ["400 invalid_request", "GET /v1/delegations 400"],
  "an escaped path": ["200", "GET /v1/agents/{agent} 200"],
  "an escaped slash": ["400 invalid_request", "GET /v1/agents/{agent} 400"],
  dots: ["200", "GET /v1/agents/{agent} 200"],
  "dots for a name": ["404 not_found", "GET other 404"],
  "dots for a name, within": ["404 not_found", "POST other 404"],
  "a dot for a name": ["404 not_found", "GET other 404"],
  "a fragment": ["200", "GET /v1/agents/{agent} 200"],
  "a fragment after a query": ["200", "GET /v1/delegations 200"],
  "the prototype": ["400 invalid_request", "GET /v1/delegations 400"],
  "a constructor": ["400 invalid_request", "GET /v1/delegations 400"],
  "an inherited name twice": ["400 invalid_request", "GET /v1/delegations 400"],
  "an absolute form": ["200", "GET /v1/agents/{agent} 200"],
  "no host": ["403 forbidden", "GET other 403"],
  "HTTP/1.0": ["200", "GET /v1/agents/{agent} 200"],
  "a body": ["200", "POST /v1/agents/{agent}/leases 200"],
  "an empty body": ["404 delegation_not_found", "POST /v1/delegations/{id}/cancel 404"],
  "broken JSON": ["400 invalid_json", "POST /v1/agents/{agent}/leases 400"],
  "not JSON": ["415 unsupported_media_type", "POST /v1/agents/{agent}/leases 415"],
  "broken UTF-8": ["400 invalid_utf8", "POST /v1/agents/{agent}/leases 400"],
  "a body of a GET": ["200", "GET /v1/agents/{agent} 200"],
  "in chunks": ["200", "POST /v1/agents/{agent}/leases 200"],
  "too large": ["413 payload_too_large", "POST /v1/agents/{agent}/leases 413"],
  "expecting 100": ["100 200", "POST /v1/agents/{agent}/leases 200"],
  "expecting the impossible": ["417", ""],
  upgrade: ["200", "GET /v1/agents/{agent} 200"],
  "letters beyond ASCII": ["400", ""],
  "a backslash": ["400 invalid_request", ""],
  "one after the other": [
    "200 200 404 agent_unknown 200",
    "GET /v1/agents/{agent} 200, GET /v1/agents/{agent} 404, POST /v1/agents/{agent}/leases 200",
  ],
  "a stream": ["200 canceled", "GET /v1/delegations/{id}/events 200"],
  "events without Accept": ["200 canceled", "GET /v1/delegations/{id}/events 200"],
  "a stream that stays connected": [
    "200 canceled 200",
    "GET /v1/agents/{agent} 200, GET /v1/delegations/{id}/events 200",
  ],
  "a stream after another request": [
    "200 200 canceled",
    "GET /v1/agents/{agent} 200, GET /v1/delegations/{id}/events 200",
  ],
  "a replay": ["200 canceled", "GET /v1/delegations/{id}/events 200"],
  "a replay by header": ["200 canceled", "GET /v1/delegations/{id}/events 200"],
  "a broken cursor": ["400 invalid_request", "GET /v1/delegations/{id}/events 400"],
  "a stream for an allowed origin": [
    "200 access-control-allow-origin: https://ops.example canceled",
    "GET /v1/delegations/{id}/events 200",
  ],
  "a stream for a foreign origin": ["403 forbidden", "GET other 403"],
  "a stream at a malformed host": ["400 invalid_request", ""],
  "a stream without a token": ["401 unauthenticated", "GET /v1/delegations/{id}/events 401"],
  "a stream by HTTP/1.0": ["200 canceled", "GET /v1/delegations/{id}/events 200"],
  "a stream by HEAD": ["200", "HEAD /v1/delegations/{id}/events 200"],
  "a live stream by HEAD": ["200", "HEAD /v1/events 200"],
  "a preflight of a stream": ["204 access-control-allow-origin: https://ops.example", "OPTIONS other 204"],
  "events as JSON": ["200 canceled", "GET /v1/delegations/{id}/events 200"],
  "no stream of an unknown delegation": ["404 delegation_not_found", "GET /v1/delegations/{id}/events 404"],
  "an unknown filter": ["400 invalid_request", "GET /v1/events 400"],
};

test("odd requests", async () => {
  const { port, broker, finished } = await setup();
  const counts = async () =>
    (await broker.metrics.text()).split("\n").filter((line) => /^errand_http_requests/.test(line));
  const found: Record<string, unknown> = {};
  for (const [name, bytes] of Object.entries({ ...REQUESTS, ...streamRequests(finished) })) {
    const before = await counts();
    const text = await sendBytes(port, bytes);
    if (bytes.startsWith("HEAD")) expect([name, text.split("\r\n\r\n")[1]]).toEqual([name, ""]);
    const grown = (await counts())
      .filter((line) => !before.includes(line))
      .map((line) => (/method="(\w+)",route="(.*?)",status="(\d+)"/.exec(line) ?? []).slice(1).join(" "));
    found[name] = [summary(text), grown.join(", ")];
  }
  expect(found).toEqual(ANSWERS);
  expect(await broker.metrics.text()).toMatch(/^errand_event_streams 0$/m);
}, 120_000);

test("a request that waits does not retain its input", async () => {
  const { gateway } = await startBroker();
  let input: WeakRef<RawInput> | undefined;
  let answer = () => {};
  const route: Route = {
    id: "wait",
    method: "POST",
    path: "/wait",
    summary: "Responds when the test says so",
    description: "",
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
  const server = createServer((request, response) => {
    new TableRequest(pipeline, route, request, response).serve({}, "http://localhost/wait");
  }).listen(0, "127.0.0.1");
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
