import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { LIMITS } from "../../../src/schema/limits.ts";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker(options);
  const api = client(broker.url);
  await api.agent("scout");
  const open = () => {
    const socket = connect(broker.gateway.port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
    });
    const send = (method: string, path: string, body?: unknown) => {
      const json = body === undefined ? "" : JSON.stringify(body);
      const head = [`${method} ${path} HTTP/1.1`, "host: localhost", `authorization: Bearer ${OPERATOR}`];
      if (body !== undefined) head.push("content-type: application/json", `content-length: ${json.length}`);
      socket.write(`${head.join("\r\n")}\r\n\r\n${json}`);
    };
    return { socket, send, text: () => text };
  };
  return { ...broker, api, open };
}

/** A poll of an agent with a token of its own, as text. */
async function headerSetup() {
  const { gateway, api, url } = await setup();
  const { token } = (await api.call("POST", "/v1/tokens", { principal: "agent:scout" })).body;
  const body = '{"wait_seconds":60}';
  const head = `host: localhost\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json`;
  const poll = `POST /v1/agents/scout/leases HTTP/1.1\r\n${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const get = (path: string) => fetch(url + path, { headers: { authorization: `Bearer ${OPERATOR}` } });
  return { gateway, api: { get }, broker: { token, owner: "agent:scout", poll } };
}

test("an idle connection stays open for as long as the setting says", async () => {
  const { open } = await setup({ keepAliveMs: 620_000 });
  const { send, text } = open();
  send("GET", "/healthz");
  await until(() => text().includes("\r\n\r\n"));
  expect(text()).toMatch(/\r\nkeep-alive: timeout=620\r\n/i);
});

test("a response to HEAD has no body, and the connection stays usable", async () => {
  const { open } = await setup();
  const { send, text } = open();
  send("HEAD", "/v1/agents");
  await until(() => text().includes("\r\n\r\n"));
  expect(text()).toMatch(/^HTTP\/1\.1 200 /);
  expect(text()).not.toContain("scout");
  send("GET", "/v1/agents/scout");
  await until(() => text().includes('"name":"scout"'));
});

test("a pipelined request waits for the one before it, and is granted nothing earlier", async () => {
  const { api, open, gateway } = await setup();
  const first = (await api.delegate("scout")).body.id;
  const [held] = (await api.lease("scout")).body.leases;
  const { send, text } = open();
  send("GET", `/v1/delegations/${first}?wait_seconds=20`);
  send("POST", "/v1/agents/scout/leases", { wait_seconds: 20 });
  send("GET", "/v1/agents/scout");
  const principal = { text: "operator" };
  await until(() => gateway.broker.quotas.inUse(principal, "polls") === 1);
  const second = (await api.delegate("scout")).body.id;
  // The work goes to a poll whose client is connected.
  const [other] = (await api.lease("scout")).body.leases;
  expect(other.delegation.id).toBe(second);
  expect(gateway.broker.handoff.polls.countAll()).toBe(0);
  await api.reply(held.lease_id);
  await until(() => gateway.broker.handoff.polls.countAll() === 1);
  expect(text()).not.toContain('"name":"scout"');
  const third = (await api.delegate("scout")).body.id;
  await until(() => text().includes('"name":"scout"'));
  const lease = /"lease_id":"(\w+)"/.exec(text())?.[1] ?? "";
  expect(lease.replace(/^lse_|_1$/g, "")).toBe(third.replace("dlg_", ""));
  expect((await api.heartbeat(lease)).status).toBe(200);
});

test("a pipelined poll whose client disconnects takes no work", async () => {
  const { api, open, gateway } = await setup();
  const first = (await api.delegate("scout")).body.id;
  const [held] = (await api.lease("scout")).body.leases;
  const { socket, send } = open();
  send("GET", `/v1/delegations/${first}?wait_seconds=20`);
  send("POST", "/v1/agents/scout/leases", { wait_seconds: 20 });
  const principal = { text: "operator" };
  await until(() => gateway.broker.quotas.inUse(principal, "polls") === 1);
  socket.destroy();
  await until(() => gateway.broker.quotas.inUse(principal, "polls") === 0);
  await api.reply(held.lease_id);
  const second = (await api.delegate("scout")).body.id;
  const [lease] = (await api.lease("scout")).body.leases;
  expect([lease.delegation.id, lease.attempt]).toEqual([second, 1]);
});

test("a connection with too many pipelined requests is closed", async () => {
  const { open, api } = await setup();
  const { id } = (await api.delegate("scout")).body;
  const { socket, send } = open();
  const closed = once(socket, "close");
  socket.on("error", () => {});
  send("GET", `/v1/delegations/${id}?wait_seconds=20`);
  for (let n = 0; n <= LIMITS.pipelined.value; n += 1) send("GET", "/v1/agents/scout");
  await closed;
  expect((await api.get(id)).status).toBe(200);
});

test("headers that wait behind a request count for its principal, and are bounded", async () => {
  const { api, gateway, broker } = await headerSetup();
  const { token, owner, poll } = broker;
  const before = gateway.headerBytes(owner);
  expect(before).toBe(0);
  const junk = `x-junk: ${"j".repeat(15_000)}\r\n`;
  const next = `GET /v1/status HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n${junk}\r\n`;
  let most = 0;
  let closed = 0;
  const flood = () => {
    const socket = connect(gateway.port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {}).once("close", () => (closed += 1));
    socket.write(poll + next.repeat(60));
  };
  const fits = Math.floor(LIMITS.header_bytes.value / (60 * 17_300));
  for (let n = 0; n < fits; n += 1) flood();
  const watch = setInterval(() => (most = Math.max(most, gateway.headerBytes())), 1);
  onTestFinished(() => clearInterval(watch));
  await until(() => gateway.headerBytes(owner) > fits * 60 * 15_000);
  for (let n = 0; n < 4; n += 1) flood();
  await until(() => closed >= 3);
  // One read of a socket is at most 64 KiB.
  expect(most).toBeLessThan(LIMITS.header_bytes.value + 8 * 65_536);
  expect((await api.get("/v1/status")).status).toBe(200);
});

test("a request with too many headers is refused with the number", async () => {
  const { open } = await setup();
  for (const [count, status] of [
    [LIMITS.headers.value, "200"],
    [LIMITS.headers.value + 1, "400"],
    [LIMITS.headers.value + 200, "400"],
  ] as const) {
    const { socket, text } = open();
    const more = Array.from({ length: count - 2 }, (_, n) => `x-${n}: 1\r\n`).join("");
    socket.write(
      `GET /v1/agents/scout HTTP/1.1\r\nhost: localhost\r\n${more}authorization: Bearer ${OPERATOR}\r\n\r\n`,
    );
    await until(() => text().includes("\r\n\r\n"));
    expect(text()).toContain(`HTTP/1.1 ${status} `);
    if (status === "400") expect(text()).toContain(`more than ${LIMITS.headers.value} headers`);
  }
});

test("a request leaves nothing behind on a connection that stays open", async () => {
  const { open } = await setup();
  const listeners: number[] = [];
  const note = (message: unknown) => {
    const { request } = message as { request: IncomingMessage };
    listeners.push(
      request.socket.eventNames().reduce((n, name) => n + request.socket.listenerCount(name), 0),
    );
  };
  subscribe("http.server.request.start", note);
  onTestFinished(() => void unsubscribe("http.server.request.start", note));
  const { send, text } = open();
  const task = "x".repeat(100_000);
  const answers = () => text().split("HTTP/1.1 ").length - 1;
  for (let n = 1; n <= 6; n += 1) {
    send("POST", "/v1/delegations", { target: "scout", task });
    await until(() => answers() === n);
  }
  expect(listeners).toHaveLength(6);
  expect(listeners.at(-1)).toBe(listeners[0]);
});

test("a request that arrives while a stopping gateway is stalled is answered", async () => {
  const { gateway, open } = await setup();
  const { socket, send, text } = open();
  send("GET", "/v1/agents/scout");
  await until(() => text().includes('"name":"scout"'), { what: "the first response" });
  const closed = once(socket, "close");
  const stopped = gateway.close();
  const stoppedAt = performance.now();
  // The gateway shares this process. After an immediate, timers run before sockets are read: the idle connection's grace
  // has ended, and its new request is still unread.
  setTimeout(() => {
    setImmediate(() => {
      send("GET", "/v1/agents/scout");
      while (performance.now() - stoppedAt < 1_000);
    });
  }, 100);
  await closed;
  await stopped;
  expect(text().match(/HTTP\/1\.1 \d+ /g)).toHaveLength(2);
  expect(text()).toMatch(/connection: close/i);
});
