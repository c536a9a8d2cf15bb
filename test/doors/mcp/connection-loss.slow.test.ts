/** Work that poll_inbox found for a closed connection goes back at once. */
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { type Era, MODERN, openSession } from "../../support/mcp.ts";
import { until } from "../../support/until.ts";

const ERAS: readonly Era[] = ["modern", "legacy"];

/** A poll of this era as HTTP text. */
async function pollOf(era: Era, url: string): Promise<string> {
  const { headers, body } = await partsOf(era, url);
  const lines = Object.entries({
    host: "localhost",
    authorization: `Bearer ${OPERATOR}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "content-length": String(Buffer.byteLength(body)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST /mcp HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}

async function partsOf(era: Era, url: string): Promise<{ headers: Record<string, string>; body: string }> {
  const params = { name: "poll_inbox", arguments: { agent: "scout", wait_seconds: 50, max: 8, full: true } };
  if (era === "modern") {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": MODERN,
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const headers = {
      "mcp-protocol-version": MODERN,
      "mcp-method": "tools/call",
      "mcp-name": "poll_inbox",
    };
    const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { ...params, _meta } };
    return { headers, body: JSON.stringify(message) };
  }
  const headers = await openSession(url, OPERATOR);
  return { headers, body: JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params }) };
}

describe.each(ERAS)("in the %s era", (era) => {
  test("work found for a cut poll goes to the next poll as attempt 1", async () => {
    const { url, gateway } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const waiting = () => gateway.broker.handoff.polls.count("scout");
    for (let round = 0; round < 24; round += 1) {
      // In a new session: in the same one, a late answer to the cut poll could be taken for the next poll's.
      const request = await pollOf(era, url);
      const socket = connect(gateway.port, "127.0.0.1");
      socket.on("error", () => {});
      socket.write(request);
      await until(() => waiting() === 1);
      if (round % 2 === 0) socket.destroy();
      else socket.resetAndDestroy();
      // The gateway may notice before the work comes, or after.
      if (round % 3 === 0) await until(() => waiting() === 0);
      const { id } = (await api.delegate("scout")).body;
      const { leases } = (await api.lease("scout", { wait_seconds: 5 })).body;
      expect(leases, `round ${round}`).toMatchObject([{ attempt: 1, delegation: { id } }]);
      await api.reply(leases[0].lease_id);
    }
  });

  test("work whose answer was not read to its end goes to the next poll, too", async () => {
    const { url, gateway } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    // Together more than the connection's buffers.
    const task = "x".repeat(1_000_000);
    for (let i = 0; i < 8; i += 1) await api.delegate("scout", { task });
    const socket = connect(gateway.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.pause();
    socket.write(await pollOf(era, url));
    const working = async () => (await api.call("GET", "/v1/agents/scout")).body.counts.working;
    // A poll is limited to about 8 MiB, and each lease contains its task twice.
    await until(async () => (await working()) >= 4, { what: "the leases", timeoutMs: 50_000 });
    socket.resetAndDestroy();
    await until(async () => (await working()) === 0, { what: "the leases' end" });
    const { leases } = (await api.lease("scout", { max: 8 })).body;
    expect(leases.length).toBeGreaterThanOrEqual(4);
    for (const { attempt } of leases) expect(attempt).toBe(1);
  }, 120_000);
});
