/** Small rules of HTTP: media types with qualities, quoted keys, one Host header, when to try again. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { prefersStream } from "../../../src/doors/http/accept.ts";
import { HEALTH_CHECKS } from "../../../src/doors/http/health.ts";
import { client, startBroker } from "../../support/broker.ts";

test.each([
  ["", false],
  ["*/*", false],
  ["text/html, */*;q=0.8", false],
  ["text/event-stream, */*", true],
  ["text/event-stream", true],
  ["text/event-stream, application/json", true],
  ["application/json, text/event-stream", true],
  ["application/json", false],
  ["application/problem+json", false],
  ["application/json;q=0", true],
  ["application/json; q=0.000, */*", true],
  ["text/event-stream;q=0", false],
  ["text/event-stream;q=0, application/json", false],
  ["text/event-stream;q=0.5, application/json", false],
  ["text/event-stream;q=0.5, application/json;q=0.4", true],
  ["TEXT/EVENT-STREAM;Q=0.0", false],
  ["text/event-stream;charset=utf-8", true],
  ["text/event-stream;q=x", true],
])("Accept %j is for a stream: %s", (accept, expected) => {
  expect(prefersStream(accept)).toBe(expected);
});

test("a quoted Idempotency-Key is the same key as the bare one", async () => {
  const api = client((await startBroker()).url);
  await api.agent("scout");
  const send = (key: string) =>
    api.call("POST", "/v1/delegations", { target: "scout", task: "x" }, { "idempotency-key": key });
  const first = await send('"k\\"1"');
  expect(first.status).toBe(202);
  const again = await send('k"1');
  expect([again.status, again.body.id]).toEqual([200, first.body.id]);
  expect((await send('""')).status).toBe(400);
  expect((await send('"k')).status).toBe(202);
});

test.each(["/v1/agents", "/metrics"])("two Host headers are refused: %s", async (path) => {
  const { gateway } = await startBroker();
  const answer = async (...hosts: string[]) => {
    const socket = connect(gateway.port, "127.0.0.1").setEncoding("utf8");
    const lines = [`GET ${path} HTTP/1.1`, ...hosts.map((host) => `${host}: localhost`), "connection: close"];
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    await once(socket, "close");
    return text;
  };
  expect(await answer("Host")).toMatch(/^HTTP\/1\.1 401 /);
  const refused = await answer("Host", "host");
  expect(refused).toMatch(/^HTTP\/1\.1 400 /);
  expect(refused).toContain("more than one Host header");
});

test("a gateway that is not ready says when to ask again", async () => {
  const options = {
    stopping: new AbortController().signal,
    readiness: async () => ({ status: "not_ready" as const, reason: "x" }),
  };
  expect(await HEALTH_CHECKS["/readyz"]?.(options)).toMatchObject({
    status: 503,
    headers: { "retry-after": "1" },
  });
});

test("the address of a card without an agent's name says what the base URL lacks, and A2A 0.2's path has the card", async () => {
  const { url } = await startBroker();
  await client(url).agent("scout");
  const missing = await client(url, null).call("GET", "/a2a/.well-known/agent-card.json");
  expect(missing).toMatchObject({
    status: 404,
    body: { recovery: expect.stringContaining("ends with a slash") },
  });
  const [old, card] = await Promise.all(
    ["agent", "agent-card"].map((name) =>
      client(url, null).call("GET", `/a2a/scout/.well-known/${name}.json`),
    ),
  );
  expect(old?.body).toEqual(card?.body);
  expect(old?.status).toBe(200);
});
