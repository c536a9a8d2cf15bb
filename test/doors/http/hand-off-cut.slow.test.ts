/** A connection that is cut while a poll waits, or while its answer is sent, costs no attempt. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { checkHistory, eventsOf } from "../../support/history.ts";
import { allowStalls } from "../../support/stalls.ts";
import { until } from "../../support/until.ts";

/** A poll on its own socket, which the test closes. */
function rawPoll(port: number, agent: string) {
  const socket = connect(port, "127.0.0.1");
  const body = '{"wait_seconds":30}';
  socket.on("error", () => {});
  socket.write(
    `POST /v1/agents/${agent}/leases HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${OPERATOR}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  return socket;
}

test("a poll whose connection is cut takes no work: the next poll gets it, as attempt 1", {
  timeout: 240_000,
}, async () => {
  const withStalls = allowStalls();
  const { url, gateway } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const waiting = () => gateway.broker.handoff.polls.count("scout");
  for (let round = 0; round < 50; round += 1) {
    const socket = rawPoll(gateway.port, "scout");
    await until(() => waiting() === 1);
    if (round % 2 === 0) socket.destroy();
    else socket.resetAndDestroy();
    // The close may be noticed before or after the work arrives.
    if (round % 3 === 0) await until(() => waiting() === 0);
    const { id } = (await api.delegate("scout")).body;
    const startedAt = Date.now();
    const { leases } = (await api.lease("scout", { wait_seconds: 5 })).body;
    expect(leases).toHaveLength(1);
    expect(leases[0]).toMatchObject({ attempt: 1, delegation: { id } });
    expect(Date.now() - startedAt).toBeLessThan(withStalls(1_000));
    await api.reply(leases[0].lease_id);
    checkHistory(await eventsOf(api, id), "finished");
  }
});

test("a reader that disconnects in the middle of a large answer leaves no lease behind", async () => {
  const { url, gateway } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  for (let n = 0; n < 32; n += 1) await api.delegate("scout", { task: "x".repeat(900_000) });
  const socket = connect(gateway.port, "127.0.0.1");
  socket.on("error", () => {});
  const body = '{"wait_seconds":5,"max":32}';
  socket.write(
    `POST /v1/agents/scout/leases HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${OPERATOR}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  // The response has begun, and the client stops reading.
  await once(socket, "data");
  socket.pause();
  socket.resetAndDestroy();
  const counts = async () => (await api.call("GET", "/v1/agents/scout")).body.counts;
  await until(async () => (await counts()).waiting === 32);
  expect((await api.lease("scout")).body.leases[0].attempt).toBe(1);
}, 120_000);
