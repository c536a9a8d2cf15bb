/** How long the CLI's own HTTP keeps a connection that is idle. */
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { z } from "zod";
import { nodeTransport } from "../../src/cli/node-transport.ts";
import { Http } from "../../src/client/http.ts";
import { BROKER_ID } from "../client/stub-broker.ts";
import { listen } from "../support/listen.ts";

test("no call goes over a connection that a server may close because it is idle", async () => {
  // It does not say how long it keeps one, and closes it when a call arrives 4.3 seconds after the last.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const { socket } = request;
    if (performance.now() - (answeredAt.get(socket) ?? Number.POSITIVE_INFINITY) > 4_300) socket.destroy();
    response.writeHead(200, { "errand-broker": BROKER_ID }).end("{}");
    answeredAt.set(socket, performance.now());
  });
  const answeredAt = new WeakMap<object, number>();
  const url = `http://127.0.0.1:${await listen(server)}`;
  const http = new Http({ url, transport: nodeTransport() });
  const call = () => http.request(z.unknown(), { method: "POST", path: "/v1/x", body: {} });
  expect(await call()).toEqual({});
  await sleep(4_700);
  expect(await call()).toEqual({});
});
