/**
 * Clients and tokens that end at an unusual moment: nothing stays occupied, and leases are returned. leaks.test.ts
 * has the usual moments.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect, Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Tokens } from "../../../src/engine/access/tokens.ts";
import { as, client, startBroker } from "../../support/broker.ts";
import { allowStalls } from "../../support/stalls.ts";
import { until } from "../../support/until.ts";

async function setup() {
  const started = await startBroker();
  const api = client(started.url);
  await api.agent("scout");
  const { broker } = started.gateway;
  return { ...started, broker, api, scout: await as(started.url, "agent:scout") };
}

/** Counts the watches on tokens from here on. */
function watchHolds(tokens: Tokens) {
  const hold = tokens.watch.bind(tokens);
  const counts = { held: 0, released: 0, ended: 0 };
  vi.spyOn(tokens, "watch").mockImplementation((identity, end) => {
    if (identity.token_id === null) return hold(identity, end);
    counts.held += 1;
    const one = hold(identity, () => {
      counts.ended += 1;
      end();
    });
    const release = () => {
      counts.released += 1;
      one.release();
    };
    return { hasEnded: () => one.hasEnded(), release };
  });
  return { held: () => counts.held, released: () => counts.released, ended: () => counts.ended };
}

/** Sends pipelined requests on a new connection. */
function open(port: number, token: string) {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  let text = "";
  socket.setEncoding("latin1").on("data", (chunk) => {
    text += chunk;
  });
  socket.on("error", () => {});
  const send = (method: string, path: string, body?: unknown, ...headers: string[]) => {
    const json = body === undefined ? "" : JSON.stringify(body);
    const head = [
      `${method} ${path} HTTP/1.1`,
      "Host: localhost",
      `Authorization: Bearer ${token}`,
      ...(body === undefined ? [] : ["Content-Type: application/json", `Content-Length: ${json.length}`]),
      ...headers,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n${json}`);
  };
  const answers = () => text.split("HTTP/1.1 ").slice(1);
  return { socket, send, answers, closed: once(socket, "close") };
}

test.each(["application/json", "text/event-stream"])(
  "a wait for %s that begins while the gateway stops ends at once",
  async (accept) => {
    const withStalls = allowStalls();
    const { gateway, broker, scout } = await setup();
    const { agents } = broker;
    const since = agents.since.bind(agents);
    let go = () => {};
    const stopping = new Promise<void>((resolve) => {
      go = resolve;
    });
    const asked = vi.spyOn(agents, "since").mockImplementation(async (name) => {
      await stopping;
      return since(name);
    });
    const { send, answers } = open(gateway.port, scout.token);
    send("GET", "/v1/events?wait_seconds=30", undefined, `Accept: ${accept}`);
    await until(() => asked.mock.calls.length === 1);
    const stoppedAt = performance.now();
    const closed = gateway.close();
    go();
    await closed;
    expect(performance.now() - stoppedAt).toBeLessThan(withStalls(2_000));
    // Including the last chunk of a stream.
    expect(answers()[0]).toMatch(
      accept === "application/json" ? /^200 .*"events":\[\]/s : /^200 .*\r\n0\r\n\r\n$/s,
    );
  },
);

test("a lease is returned when the token of its poll was revoked while the next fetch failed", async () => {
  const { url, broker, api, scout } = await setup();
  const { id } = (await api.delegate("scout")).body;
  const take = broker.writer.take.bind(broker.writer);
  const looks = vi.spyOn(broker.writer, "take").mockImplementation(async (taker) => {
    if (looks.mock.calls.length === 1) return take(taker);
    await broker.tokens.revoke(scout.tokenId);
    throw new Error("no answer");
  });
  expect((await client(url, scout.token).lease("scout", { max: 2 })).status).toBe(401);
  looks.mockRestore();
  const [lease] = (await api.lease("scout")).body.leases;
  expect(lease).toMatchObject({ attempt: 1, delegation: { id } });
});

test("an interrupted revocation still ends the streams and polls of the token", async () => {
  const { url, broker, api, scout } = await setup();
  const poll = client(url, scout.token).lease("scout", { wait_seconds: 30 });
  await until(() => broker.handoff.polls.countAll() === 1);
  vi.spyOn(broker.redis, "zrem").mockRejectedValueOnce(new Error("Command timed out"));
  await api.call("DELETE", `/v1/tokens/${scout.tokenId}`);
  expect((await poll).status).toBe(401);
});

test.each(["leaves", "is revoked"])(
  "a held heartbeat whose client %s does not extend the lease",
  async (how) => {
    const { gateway, broker, api, scout, clock } = await setup();
    const { id } = (await api.delegate("scout")).body;
    const [lease] = (await api.lease("scout")).body.leases;
    const expiresAt = async () => (await api.get(id)).body.lease.expires_at;
    const { released } = watchHolds(broker.tokens);
    clock.offset_ms = 1_000;
    const { socket, send } = open(gateway.port, scout.token);
    send("POST", `/v1/leases/${lease.lease_id}/heartbeat`, { wait_seconds: 20 });
    const extended = await until(async () => {
      const now = await expiresAt();
      return now === lease.expires_at ? null : now;
    });
    clock.offset_ms = 5_000;
    if (how === "leaves") socket.destroy();
    else await broker.tokens.revoke(scout.tokenId);
    await until(() => released() === 1);
    expect(await expiresAt()).toBe(extended);
  },
);

test("requests that waited on a connection leave no listeners there", async () => {
  const withStalls = allowStalls();
  const { gateway, broker, api, scout } = await setup();
  const sockets = new Set<Socket>();
  const onStart = (message: unknown) => {
    if (typeof message !== "object" || message === null || !("socket" in message)) return;
    const { socket } = message;
    if (socket instanceof Socket && socket.localPort === gateway.port) sockets.add(socket);
  };
  const warnings: string[] = [];
  const onWarning = ({ name }: Error) => void warnings.push(name);
  subscribe("http.server.request.start", onStart);
  process.on("warning", onWarning);
  onTestFinished(() => {
    unsubscribe("http.server.request.start", onStart);
    process.off("warning", onWarning);
  });
  const { send, answers } = open(gateway.port, scout.token);
  send("GET", "/v1/agents/scout");
  await until(() => answers().length === 1);
  const [socket] = sockets;
  const listeners = () => socket?.eventNames().map((name) => [String(name), socket.listenerCount(name)]);
  const before = listeners();
  const { held, released, ended } = watchHolds(broker.tokens);

  const { id } = (await api.delegate("scout")).body;
  const [lease] = (await api.lease("scout")).body.leases;
  const poll = () => send("POST", "/v1/agents/scout/leases", { wait_seconds: 20 });
  for (let n = 0; n < 20; n += 1) poll();
  send("POST", "/v1/agents/scout/leases", { wait_seconds: 0 });
  send("GET", `/v1/delegations/${id}?wait_seconds=0.2`);
  send("GET", "/v1/results?wait_seconds=0.2");
  send("GET", "/v1/events?wait_seconds=0.2", undefined, "Accept: application/json");
  send("POST", `/v1/leases/${lease.lease_id}/heartbeat`, { wait_seconds: 0.2 });
  // Pipelined requests are served in order.
  await until(() => broker.handoff.polls.countAll() === 1);
  for (let n = 0; n < 20; n += 1) await api.delegate("scout");
  await until(() => answers().length === 26);
  expect(answers().every((answer) => answer.startsWith("200"))).toBe(true);
  await until(() => released() === held());

  expect(listeners()).toEqual(before);
  expect(warnings).toEqual([]);
  await broker.tokens.revoke(scout.tokenId);
  expect(ended()).toBe(0);
  // The close does not wait for an idle connection.
  const stoppedAt = performance.now();
  await gateway.close();
  expect(performance.now() - stoppedAt).toBeLessThan(withStalls(3_000));
});

test("a malformed host is refused with a problem", async () => {
  const { gateway, scout } = await setup();
  const { socket, answers } = open(gateway.port, scout.token);
  socket.write("GET /v1/events HTTP/1.1\r\nHost: local host\r\nConnection: close\r\n\r\n");
  await until(() => answers().length === 1);
  expect(answers()[0]).toMatch(/^400 .*x-request-id: req_.*"code":"invalid_request".*"recovery"/is);
});

test("a client that disconnects is noticed even behind an unread body", async () => {
  const { gateway, broker, api, scout } = await setup();
  const { id } = (await api.delegate("scout")).body;
  await api.lease("scout");
  const { held, released } = watchHolds(broker.tokens);
  const { socket, send } = open(gateway.port, scout.token);
  send("POST", "/v1/agents/scout/leases", { wait_seconds: 20 });
  send("GET", `/v1/delegations/${id}?wait_seconds=20`, "x".repeat(500_000));
  await until(() => held() === 1);
  // The whole request is sent.
  await until(() => socket.writableLength === 0);
  socket.destroy();
  await until(() => released() === 1);
  expect(broker.handoff.polls.countAll()).toBe(0);
});
