import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { OPERATOR, startBroker } from "../../support/broker.ts";

/** Sends the lines as they are, and returns the status. */
async function statusOf(port: number, host: string, lines: readonly string[]): Promise<number> {
  const socket = connect(port, host).setEncoding("utf8");
  socket.write(`${[...lines, "connection: close"].join("\r\n")}\r\n\r\n`);
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  await once(socket, "close");
  return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
}

const HOSTS = [
  [],
  ["host: 10.1.2.3:4180"],
  ["host: gateway_1.internal"],
  ["host: no such host"],
  ["host: [::1"],
  ["host:"],
];

test.each(["127.0.0.1", "::1", "0.0.0.0", "::"])(
  "on %s health checks answer without a Host header and with any, and nothing else does",
  async (address) => {
    const { gateway } = await startBroker({ host: address });
    const to = address.includes(":") ? "::1" : "127.0.0.1";
    const isLocal = address === "127.0.0.1" || address === "::1";
    for (const host of HOSTS) {
      for (const line of ["GET /healthz", "GET /readyz", "HEAD /readyz?from=haproxy"])
        expect([line, host, await statusOf(gateway.port, to, [`${line} HTTP/1.0`, ...host])]).toEqual([
          line,
          host,
          200,
        ]);
      for (const path of ["/v1/agents", "/healthz/", "/docs", "/readyz/../v1/agents"]) {
        const asked = [`GET ${path} HTTP/1.0`, ...host, `authorization: Bearer ${OPERATOR}`];
        if (isLocal) expect([403, 400]).toContain(await statusOf(gateway.port, to, asked));
      }
    }
    const page = ["GET /readyz HTTP/1.1", "host: 10.1.2.3", "origin: https://evil.example"];
    expect(await statusOf(gateway.port, to, page)).toBe(403);
    expect(await statusOf(gateway.port, to, ["GET /readyz HTTP/1.1", "host: 10.1.2.3"])).toBe(200);
    // HTTP requires this answer.
    expect(await statusOf(gateway.port, to, ["GET /readyz HTTP/1.1"])).toBe(400);
  },
);
