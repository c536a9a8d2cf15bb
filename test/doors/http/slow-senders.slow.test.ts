/** Requests that arrive slowly, in part, or too many at once. Limit: the documented times are shortened here. */
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { LIMITS } from "../../../src/schema/limits.ts";
import { as, client, startBroker } from "../../support/broker.ts";
import { allowStalls } from "../../support/stalls.ts";
import { until } from "../../support/until.ts";

const MIB = 1024 * 1024;
const ARRIVAL = { headersMs: 300, requestMs: 600, checkMs: 100 };

async function setup(arrival = ARRIVAL) {
  const broker = await startBroker({ arrival });
  const api = client(broker.url);
  await api.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  const bob = await as(broker.url, "caller:bob");
  const send = (text: string) => {
    const socket = connect(broker.gateway.port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    let answer = "";
    socket.setEncoding("latin1").on("data", (some) => {
      answer += some;
    });
    socket.on("error", () => {});
    socket.write(text);
    return { socket, answer: () => answer };
  };
  const head = (token: string, length: string | number, more = "") =>
    `POST /v1/delegations HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n` +
    `content-type: application/json\r\n${more}${typeof length === "number" ? `content-length: ${length}` : length}\r\n\r\n`;
  return { ...broker, api, alice, bob, send, head };
}

/** Sends one byte every few milliseconds while the connection is open. */
function trickle(socket: Socket, text: string): void {
  let at = 0;
  const timer = setInterval(() => socket.write(text[at++ % text.length] ?? ""), 5);
  socket.once("close", () => clearInterval(timer));
  onTestFinished(() => clearInterval(timer));
}

test("connections of senders that do not finish a request are closed in time; others are served meanwhile", async () => {
  const { gateway, api, alice, bob, send, head, url } = await setup();
  const json = JSON.stringify({ target: "scout", task: "x" });
  const headers = send("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ");
  const body = send(head(alice.token, 1_000));
  const chunked = send(head(alice.token, "transfer-encoding: chunked"));
  const slow = {
    "nothing at all": send(""),
    "half a request line": send("GET /heal"),
    "headers a byte at a time": headers,
    "a body a byte at a time": body,
    "a body shorter than announced": send(`${head(alice.token, json.length + 1)}${json}`),
    "chunks without an end": chunked,
    "a large body that stops": send(`${head(alice.token, 1_000_000)}${"x".repeat(500_000)}`),
  };
  trickle(headers.socket, "a");
  trickle(body.socket, " ");
  trickle(chunked.socket, "1\r\n \r\n");
  await until(() => gateway.requestBytes("caller:alice") === 1_000_000);
  for (const [what, { socket }] of Object.entries(slow)) {
    expect((await bob.delegate("scout")).status).toBe(202);
    await until(() => socket.closed, { what: `${what}: closed` });
  }
  for (const { answer } of Object.values(slow)) expect(answer()).toMatch(/^(?:$|HTTP\/1\.1 (?:408|400) )/);
  await until(() => gateway.requestBytes() === 0);
  expect((await api.call("GET", "/v1/delegations?delegator=caller:alice")).body.delegations).toEqual([]);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});

test("the part of a body beyond its announced length is parsed as the next request, and refused", async () => {
  const { alice, send, head } = await setup();
  const json = JSON.stringify({ target: "scout", task: "x" });
  const { socket, answer } = send(`${head(alice.token, json.length)}${json}`);
  await until(() => answer().startsWith("HTTP/1.1 202 "));
  socket.write("trailing bytes\r\n\r\n");
  await until(() => socket.closed);
  expect(answer().match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 202", "HTTP/1.1 400"]);
});

test("the gateway stops in time with slow senders connected", async () => {
  const { gateway, alice, send, head } = await setup({ ...ARRIVAL, headersMs: 60_000, requestMs: 60_000 });
  const slow = [send(""), send("GET /heal"), send(`${head(alice.token, 200_000)}{`)];
  await until(() => gateway.requestBytes() === 200_000);
  const withStalls = allowStalls();
  const since = performance.now();
  await gateway.close();
  expect(performance.now() - since).toBeLessThan(withStalls(9_000));
  await until(() => slow.every(({ socket }) => socket.closed));
});

test("the large bodies of a principal are bounded until the responses are sent", async () => {
  const { gateway, alice, bob, send, head } = await setup({
    ...ARRIVAL,
    headersMs: 60_000,
    requestMs: 60_000,
  });
  const most = LIMITS.request_bytes.value / MIB;
  const halves = Array.from({ length: most }, () => send(`${head(alice.token, MIB)}${"x".repeat(MIB / 2)}`));
  await until(() => gateway.requestBytes("caller:alice") === most * MIB);
  const task = "x".repeat(100_000);
  const refused = await alice.delegate("scout", { task });
  expect(refused).toMatchObject({
    status: 429,
    body: { code: "quota_exceeded", details: { quota: "request_bytes", outcome: "not_executed" } },
  });
  expect(refused.headers.get("retry-after")).toBe("5");
  // Chunked bodies announce no length; small requests and other principals have room.
  const chunks = send(`${head(alice.token, "transfer-encoding: chunked")}`);
  chunks.socket.write(`${(100_000).toString(16)}\r\n${task}\r\n`);
  await until(() => chunks.answer().startsWith("HTTP/1.1 429 "));
  expect((await alice.delegate("scout")).status).toBe(202);
  expect((await bob.delegate("scout", { task })).status).toBe(202);
  for (const { socket } of halves) socket.destroy();
  await until(() => gateway.requestBytes() === 0);

  // A waiting request still counts its body.
  const json = JSON.stringify({ target: "scout", task });
  const waiting = send(`${head(alice.token, json.length, "prefer: wait=60\r\n")}${json}`);
  await until(() => gateway.requestBytes("caller:alice") === json.length);
  await until(() => gateway.broker.quotas.inUse({ text: "caller:alice" }, "polls") === 1);
  expect(gateway.requestBytes("caller:alice")).toBe(json.length);
  waiting.socket.destroy();
  await until(() => gateway.requestBytes() === 0);
});
