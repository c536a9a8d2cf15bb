/** Answers of MCP that nobody reads. */
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { as, startBroker } from "../../support/broker.ts";
import { LEGACY, openSession } from "../../support/mcp.ts";
import { until } from "../../support/until.ts";

test("what a client of a session has not read is counted for its principal, and no longer when it leaves", async () => {
  const { url, gateway } = await startBroker();
  const alice = await as(url, "caller:alice");
  const session = await openSession(url, alice.token);
  const messages = Array.from({ length: 100 }, (_, id) => ({ jsonrpc: "2.0", id, method: "tools/list" }));
  const body = JSON.stringify(messages);
  const head = [
    "POST /mcp HTTP/1.1",
    "host: localhost",
    `authorization: Bearer ${alice.token}`,
    "content-type: application/json",
    "accept: application/json, text/event-stream",
    `mcp-session-id: ${session["mcp-session-id"]}`,
    `mcp-protocol-version: ${LEGACY}`,
    `content-length: ${body.length}`,
  ];
  const socket = connect(gateway.port, "127.0.0.1").pause();
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  await until(() => gateway.unreadBytes("caller:alice") > 0);
  expect(gateway.unreadBytes()).toBe(gateway.unreadBytes("caller:alice"));
  socket.destroy();
  await until(() => gateway.unreadBytes() === 0);
});
