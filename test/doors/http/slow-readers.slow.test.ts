/** Clients that send requests and do not read. Limit: the kernel's buffers are not counted. */
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { LIMITS } from "../../../src/schema/limits.ts";
import { as, client, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

const MIB = 1024 * 1024;
const READERS = 24;
/** The size of one list. */
const RECORDS = 4;

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const { shards, writer } = broker.gateway.broker;
  const message = JSON.stringify({ messageId: "m", role: "ROLE_USER", parts: [{ text: "x".repeat(MIB) }] });
  for (let n = 0; n < RECORDS; n += 1) {
    const params = { target: "scout", delegator: "caller:alice", context_id: "c", priority: 5, ttl_ms: 1e6 };
    await writer.move({
      move: "submit",
      id: shards.newDelegationId("scout"),
      params,
      fields: { message },
      bytes: message.length,
    });
  }
  const asking = (path: string, token?: string): Socket => {
    const socket = connect(broker.gateway.port, "127.0.0.1").pause();
    onTestFinished(() => void socket.destroy());
    const who = token === undefined ? "" : `Authorization: Bearer ${token}\r\n`;
    socket.on("error", () => {});
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${who}\r\n`);
    return socket;
  };
  const cut = async () => {
    const text = await broker.gateway.broker.metrics.text();
    return Number(/^errand_answers_cut_total (\d+)$/m.exec(text)?.[1]);
  };
  return { ...broker, api, asking, cut, unread: broker.gateway.unread };
}

test("unread responses of a caller are bounded; beyond that connections are closed", async () => {
  const { url, api, asking, cut, clock, unread } = await setup();
  const alice = await as(url, "caller:alice");
  for (let n = 0; n < READERS; n += 1) asking("/v1/delegations", alice.token);
  const most = Math.floor(LIMITS.unread_bytes.value / (RECORDS * MIB));
  await until(async () => (await cut()) >= READERS - most);
  // Clients that read are served meanwhile, for this caller and others.
  expect((await alice.call("GET", "/v1/delegations")).body.delegations).toHaveLength(RECORDS);
  expect((await api.call("GET", "/v1/delegations")).body.delegations).toHaveLength(RECORDS);
  await until(() => unread() > 0, { what: "a reader that stands still" });
  const closed = () => {
    clock.offset_ms += LIMITS.stalled_seconds.value * 1000;
    return unread() === 0;
  };
  await until(closed, { what: "all of them closed" });
  expect((await api.call("GET", "/v1/agents/scout")).status).toBe(200);
}, 120_000);

test("a connection that is not read is closed, also without a token and for small responses", async () => {
  const { asking, clock, unread } = await setup();
  const socket = asking("/healthz");
  for (let n = 0; n < LIMITS.pipelined.value - 1; n += 1) {
    socket.write(`GET ${n % 2 === 0 ? "/docs" : "/openapi.json"} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  }
  await until(() => unread() > 0);
  const closed = () => {
    clock.offset_ms += LIMITS.stalled_seconds.value * 1000;
    return unread() === 0;
  };
  await until(closed);
}, 120_000);
