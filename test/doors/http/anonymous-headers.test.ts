/** What addresses without a token hold does not cut off a valid token. Their bytes are counted at a real gateway. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { connect, Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Connection } from "../../../src/doors/http/connection.ts";
import { Connections } from "../../../src/doors/http/connections.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import { OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

const ADDRESSES = ["203.0.113.1", "203.0.113.2", "203.0.113.3"];
const SHARE = Math.ceil(LIMITS.anonymous_header_bytes.value / ADDRESSES.length) + 1;
const LARGE = `x-junk: ${"j".repeat(8_000)}`;

/** Notes the broker's side of each connection. */
function sockets(): Map<string, Socket> {
  const all = new Map<string, Socket>();
  const note = (message: unknown) => {
    const { request } = message as { request: IncomingMessage };
    all.set(String(request.headers["x-forwarded-for"]), request.socket);
  };
  subscribe("http.server.request.start", note);
  onTestFinished(() => void unsubscribe("http.server.request.start", note));
  return all;
}

async function full() {
  const { gateway } = await startBroker({ trustedProxies: ["127.0.0.1"] });
  const served = sockets();
  const send = (method: string, path: string, address: string, ...more: string[]) => {
    const socket = connect(gateway.port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    const seen = { text: "", isClosed: false };
    socket.setEncoding("utf8").on("data", (chunk) => (seen.text += chunk));
    socket.on("error", () => {}).once("close", () => (seen.isClosed = true));
    const head = [`${method} ${path} HTTP/1.1`, "host: localhost", `x-forwarded-for: ${address}`, ...more];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    return seen;
  };
  // Their bodies never arrive.
  for (const address of ADDRESSES) send("POST", "/v1/sessions", address, "content-length: 9");
  await until(() => served.size === ADDRESSES.length);
  for (const address of ADDRESSES) {
    const socket = served.get(address);
    // As a large request that waits behind the first.
    if (socket) Connection.of(socket)?.begin(SHARE, () => {});
  }
  const held = gateway.headerBytes();
  expect(held).toBeGreaterThan(LIMITS.anonymous_header_bytes.value);
  return { gateway, send, held };
}

test("a valid token is served when addresses without one hold all that they may", async () => {
  const { gateway, send, held } = await full();
  const seen = send("GET", "/v1/agents", "203.0.113.9", `authorization: Bearer ${OPERATOR}`, LARGE);
  await until(() => seen.isClosed || seen.text.includes("\r\n\r\n"));
  expect(seen.text).toMatch(/^HTTP\/1\.1 200 /);
  await until(() => gateway.headerBytes() === held);
});

test("a request without a token, or with one that is refused, is then closed", async () => {
  const { gateway, send, held } = await full();
  for (const more of [[], ["authorization: Bearer nonsense"], ["authorization: Basic eDp5"]]) {
    const seen = send("GET", "/v1/agents", "203.0.113.9", ...more, LARGE);
    await until(() => seen.isClosed);
    expect(seen.text).toBe("");
  }
  await until(() => gateway.headerBytes() === held);
});

function unread(connections: Connections, address: string, bytes: number): Socket {
  const socket = new Socket();
  Object.defineProperties(socket, { remoteAddress: { value: address }, writableLength: { value: bytes } });
  onTestFinished(() => void socket.destroy());
  connections.add(socket);
  return socket;
}

test("an answer that nobody reads, given without a look at the token, makes the request one without", () => {
  const connections = new Connections();
  for (const address of ADDRESSES) {
    const socket = unread(connections, address, 0);
    connections.get(socket)?.begin(SHARE, () => {});
  }
  const [looked, answered] = [unread(connections, "203.0.113.9", 0), unread(connections, "203.0.113.9", 1)];
  for (const socket of [looked, answered])
    expect(connections.get(socket)?.begin(9_000, () => {}, true)).toBe(true);
  connections.check();
  expect([connections.get(looked) !== undefined, connections.get(answered)]).toEqual([true, undefined]);
});
