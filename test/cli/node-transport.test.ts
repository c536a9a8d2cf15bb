/** The CLI's own HTTP: it behaves as fetch does, in what it sends, in what it reads, and in how it fails. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import * as https from "node:https";
import { createServer as createTcpServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { nodeTransport } from "../../src/cli/node-transport.ts";
import { Delegator } from "../../src/client/delegator.ts";
import { ErrandApiError } from "../../src/client/errors.ts";
import { type Call, type Connection, Http } from "../../src/client/http.ts";
import { BROKER_ID, stubBroker } from "../client/stub-broker.ts";
import { CERTIFICATE } from "../support/certificate.ts";
import { startProxy } from "../support/forward-proxy.ts";
import { listen } from "../support/listen.ts";

const GET: Call = { path: "/v1/x" };
const ID = { "errand-broker": BROKER_ID };
const transport = nodeTransport();

const call = (connection: Connection, one = GET) => new Http(connection).request(z.unknown(), one);

/** What the caller is told of a failed call. */
async function failureOf(connection: Connection, one = GET): Promise<Record<string, unknown>> {
  const error = await call(connection, one).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ErrandApiError)) throw new Error(`expected a failure, got ${String(error)}`);
  const { code, message, category, retryable, recovery, details } = error;
  return { code, message, category, retryable, recovery, details };
}

/** The URL of a server of TCP or TLS, whose connections the test serves. */
async function serve(server: Server, scheme = "http"): Promise<string> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = server.address();
  return `${scheme}://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`;
}

/** A server that answers a request so. */
const answering = (answer: (socket: Socket) => void): Promise<string> =>
  serve(createTcpServer((socket) => socket.once("data", () => answer(socket))));
const sending = (...pieces: (string | Buffer)[]): Promise<string> =>
  answering((socket) => socket.end(Buffer.concat(pieces.map((one) => Buffer.from(one)))));
/** Where nothing listens. */
async function unusedUrl(): Promise<string> {
  const server = createTcpServer();
  const url = await serve(server);
  server.close();
  return url;
}
const OK = `HTTP/1.1 200 OK\r\nerrand-broker: ${BROKER_ID}\r\n`;
const tlsServer = (): Promise<string> => serve(createTlsServer(CERTIFICATE), "https");

const FAILURES: Readonly<Record<string, { code: string; at: () => Promise<string> }>> = {
  "nothing listens": { code: "unreachable", at: unusedUrl },
  "a port that fetch refuses": { code: "not_a_broker", at: async () => "http://127.0.0.1:6000" },
  "no HTTP": { code: "not_a_broker", at: () => sending("220 mail.example ESMTP\r\n") },
  "TLS where there is none": {
    code: "not_a_broker",
    at: async () => (await sending("HTTP/1.1 400 Bad Request\r\n\r\n")).replace("http:", "https:"),
  },
  "a certificate that nobody trusts": { code: "not_a_broker", at: tlsServer },
  "no TLS where it is required": {
    code: "connection_lost",
    at: async () => (await tlsServer()).replace("https:", "http:"),
  },
  "a connection that ends before the answer": { code: "connection_lost", at: () => sending() },
  "a connection that ends in the head": { code: "connection_lost", at: () => sending(OK) },
  "a connection that is reset": {
    code: "connection_lost",
    at: () => answering((socket) => socket.resetAndDestroy()),
  },
  "a body that is too short": {
    code: "connection_lost",
    at: () => sending(OK, 'content-length: 99\r\n\r\n{"a":'),
  },
  "a piece that is too short": {
    code: "connection_lost",
    at: () => sending(OK, 'transfer-encoding: chunked\r\n\r\n63\r\n{"a":'),
  },
  "a piece without a length": {
    code: "not_a_broker",
    at: () => sending(OK, "transfer-encoding: chunked\r\n\r\nlong\r\n{}"),
  },
  "a head without an end": {
    code: "connection_lost",
    at: () => sending(OK, `more: ${"x".repeat(100_000)}`, "\r\n\r\n"),
  },
  "a proxy that wants credentials": {
    code: "proxy_auth_required",
    at: () => sending("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"),
  },
  "a redirect": {
    code: "invalid_response",
    at: () => sending("HTTP/1.1 307 Temporary Redirect\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n"),
  },
  "another program's page": { code: "invalid_response", at: () => sending("HTTP/1.1 404 No\r\n\r\n<h1>No") },
  "no answer in time": { code: "no_answer", at: () => answering(() => undefined) },
  "no end in time": { code: "no_answer", at: () => answering((socket) => socket.write(`${OK}\r\n{`)) },
};

/** For what is not HTTP, the fetch of Node 24 has no code. */
const unnamed = (told: Record<string, unknown>) => ({
  ...told,
  message: String(told.message).replace(/\bHPE_\w+/, "HTTPParserError"),
});

test.each(Object.entries(FAILURES))("%s is told as with fetch", async (what, { code, at }) => {
  const url = await at();
  const one = what.endsWith("in time") ? { ...GET, timeoutMs: 100 } : GET;
  const told = await failureOf({ url, transport }, one);
  expect(unnamed(told)).toEqual(unnamed(await failureOf({ url, fetch }, one)));
  expect(told.code).toBe(code);
});

test("a connection that is not made in time is given up", async () => {
  // It accepts the connection, and says nothing that TLS waits for.
  const url = await serve(createTcpServer(), "https");
  const { code, message } = await failureOf({ url, transport: nodeTransport(50) });
  expect([code, message]).toEqual(["unreachable", `nothing answers at ${url} (UND_ERR_CONNECT_TIMEOUT)`]);
});

describe("what is sent", () => {
  /** The requests that a server gets, with their bodies. */
  async function recorder() {
    const seen: { method: string; headers: IncomingMessage["headers"]; body: string }[] = [];
    const port = await listen(
      createServer(async (request, response) => {
        const body = Buffer.concat(await request.toArray()).toString("latin1");
        seen.push({ method: request.method ?? "", headers: request.headers, body });
        response.writeHead(200, ID).end("{}");
      }),
    );
    return { url: `http://127.0.0.1:${port}`, seen };
  }

  test.each<[string, Call]>([
    ["a read", GET],
    ["a read with headers", { ...GET, headers: { accept: "text/plain", "idempotency-key": "k1" } }],
    ["JSON", { ...GET, method: "POST", body: { text: "für" } }],
    ["5 MB", { ...GET, method: "POST", body: { text: "é".repeat(2_500_000) } }],
    ["bytes", { ...GET, method: "PATCH", bytes: new Uint8Array([0, 255, 128]) }],
    ["no bytes", { ...GET, method: "PATCH", bytes: new Uint8Array() }],
    ["POST without a body", { ...GET, method: "POST" }],
    ["PUT without a body", { ...GET, method: "PUT" }],
    ["DELETE", { ...GET, method: "DELETE" }],
    ["DELETE with a body", { ...GET, method: "DELETE", body: { force: true } }],
  ])("%s", async (_what, one) => {
    const { url, seen } = await recorder();
    await call({ url, token: "t", transport }, one);
    await call({ url, token: "t", fetch }, one);
    const [sent, expected] = seen.map(({ headers, ...rest }) => {
      const {
        "sec-fetch-mode": _mode,
        "accept-language": _language,
        "accept-encoding": _encoding,
        ...all
      } = headers;
      return { ...rest, headers: all };
    });
    expect(sent).toEqual(expected);
  });

  test("the token goes to no other server, and to a proxy only where a variable names it", async () => {
    const { url, seen } = await recorder();
    const { port } = new URL(url);
    const proxy = await startProxy({ to: Number(port) });
    vi.stubEnv("HTTP_PROXY", `http://${proxy.place}`);
    vi.stubEnv("NO_PROXY", "");
    await call({ url: "http://broker.example", token: "t", transport });
    expect(proxy.seen).toEqual(["GET http://broker.example/v1/x"]);
    vi.stubEnv("HTTP_PROXY", "ftp://nowhere");
    expect(await failureOf({ url: "http://broker.example", transport })).toMatchObject({
      code: "invalid_proxy",
    });
    await call({ url, token: "t", transport });
    expect([proxy.seen.length, seen.length]).toEqual([1, 2]);
  });
});

describe("what is read", () => {
  const serving = async (answer: RequestListener): Promise<string> =>
    `http://127.0.0.1:${await listen(createServer(answer))}`;

  test("a large answer, in pieces that cut characters, and with a mark of UTF-8", async () => {
    const text = "é€😀".repeat(500_000);
    const bytes = Buffer.from(`\ufeff${JSON.stringify(text)}`);
    const url = await serving((_request, response) => {
      response.writeHead(200, ID);
      for (let at = 0; at < bytes.length; at += 99_991) response.write(bytes.subarray(at, at + 99_991));
      response.end();
    });
    expect(await call({ url, transport })).toBe(text);
  });

  test("an answer that a server in front of the broker has compressed", async () => {
    const url = await serving((request, response) => {
      expect(request.headers["accept-encoding"]).toBe("gzip");
      response.writeHead(200, { ...ID, "content-encoding": "gzip" }).end(gzipSync('{"a":1}'));
    });
    expect(await call({ url, transport })).toEqual({ a: 1 });
  });

  test("an answer without a body that says it is compressed", async () => {
    const empty = await sending(OK, "content-encoding: gzip\r\ncontent-length: 0\r\n\r\n");
    const response = await transport(new URL(empty), {
      ...{ method: "GET", headers: {}, redirect: "manual" },
      signal: new AbortController().signal,
    });
    expect(await response.text()).toBe("");
  });

  test("an answer that is not what it says, which fetch waits for without an end", async () => {
    const url = await sending(OK, "content-encoding: gzip\r\n\r\n", "not compressed");
    const { message } = await failureOf({ url, transport });
    expect(message).toBe(`the connection to ${url} was lost (Z_DATA_ERROR)`);
  });

  test("a refusal that a server in front of the broker has compressed, and the start of an endless page", async () => {
    const problem = {
      code: "not_found",
      category: "PROTOCOL",
      status: 404,
      detail: "No.",
      broker_id: BROKER_ID,
    };
    const refusal = {
      type: "urn:x",
      title: "x",
      retryable: false,
      recovery: "Look.",
      request_id: "r",
      ...problem,
    };
    const refused = await serving((_request, response) => {
      response.writeHead(404, { "content-encoding": "gzip" }).end(gzipSync(JSON.stringify(refusal)));
    });
    expect(await failureOf({ url: refused, transport })).toMatchObject({ code: "not_found", message: "No." });
    let isOpen = true;
    const endless = await serving((_request, response) => {
      response.writeHead(404);
      response.on("close", () => {
        isOpen = false;
      });
      const more = () => void (isOpen && response.write("x".repeat(100_000), () => setImmediate(more)));
      more();
    });
    const { message } = await failureOf({ url: endless, transport });
    expect(message).toContain("answered with HTTP 404");
    await vi.waitFor(() => expect(isOpen).toBe(false));
  });

  test("an empty answer, and one by IPv6", async () => {
    const empty = await serving((_request, response) => response.writeHead(204, ID).end());
    expect(await call({ url: empty, transport })).toBe(undefined);
    const server = createServer((_request, response) => response.writeHead(200, ID).end("6"));
    server.listen(0, "::1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    expect(await call({ url: `http://[::1]:${port}`, transport })).toBe(6);
  });

  test("https, where the certificate is trusted", async () => {
    const server = https.createServer(CERTIFICATE, (_request, response) =>
      response.writeHead(200, ID).end("{}"),
    );
    const url = await serve(server, "https");
    const { ca } = https.globalAgent.options;
    https.globalAgent.options.ca = CERTIFICATE.cert;
    onTestFinished(() => {
      https.globalAgent.options.ca = ca;
    });
    expect(await call({ url, transport: nodeTransport() })).toEqual({});
  });

  test("two calls, one connection", async () => {
    const ports = new Set<number | undefined>();
    const url = await serving((request, response) => {
      ports.add(request.socket.remotePort);
      response.writeHead(200, ID).end("{}");
    });
    await call({ url, transport });
    await call({ url, transport });
    expect(ports.size).toBe(1);
  });
});

function answered() {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve: () => resolve() };
}

test.each(["before the answer", "in the answer"])("an abort %s ends the connection", async (when) => {
  const arrived = answered();
  const ended = answered();
  const url = await answering((socket) => {
    socket.on("close", ended.resolve);
    if (when === "in the answer") socket.write(`${OK}\r\n{`);
    arrived.resolve();
  });
  const controller = new AbortController();
  const waiting = call({ url, transport }, { ...GET, signal: controller.signal });
  await arrived.promise;
  const reason = new Error("enough");
  controller.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  await ended.promise;
});

test("a signal that is aborted before sends nothing", async () => {
  const stub = await stubBroker((_request, answer) => answer.json({}));
  const reason = new Error("enough");
  const signal = AbortSignal.abort(reason);
  await expect(call({ url: stub.url, transport }, { ...GET, signal })).rejects.toBe(reason);
  expect(stub.seen).toEqual([]);
});

test("fetch sends what is a stream, and everything where the caller gives one", async () => {
  const none = () => Promise.reject(new Error("not this one"));
  const stub = await stubBroker((request, answer) =>
    request.path.endsWith("/events") ? answer.raw.writeHead(204, ID).end() : answer.json({}),
  );
  const connection: Connection = { url: stub.url, transport: none };
  expect(await new Delegator(connection).watch("dlg").next()).toMatchObject({ done: true });
  expect(await call({ url: stub.url, transport: none, fetch })).toEqual({});
});
