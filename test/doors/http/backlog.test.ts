/**
 * Many clients that reconnect at once are all accepted. Limit: Linux only, because it reads a counter of the kernel.
 */
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { startBroker } from "../../support/broker.ts";

const COUNTERS = "/proc/net/netstat";
const MOST = "/proc/sys/net/core/somaxconn";

/** How often the kernel dropped a connection. */
function overflows(): number {
  const [names = "", values = ""] = readFileSync(COUNTERS, "utf8").split("\n");
  return Number(values.split(" ")[names.split(" ").indexOf("ListenOverflows")]);
}

test.runIf(existsSync(COUNTERS))("a thousand connections at the same instant are all accepted", async () => {
  const { gateway } = await startBroker();
  const count = Math.min(1_000, Number(readFileSync(MOST, "utf8")) - 1);
  const before = overflows();
  const sockets = Array.from({ length: count }, () => connect(gateway.port, "127.0.0.1"));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  expect(overflows() - before).toBe(0);
  for (const socket of sockets) socket.destroy();
});
