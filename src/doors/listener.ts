/** The HTTP server: plain requests go the direct way, all others through Hono. Limit: HTTP/1.1; TLS is a proxy's. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { Door } from "./http.ts";

/** How long a kept connection without a request stays open once the gateway stops. */
const IDLE_GRACE_MS = 300;

export interface Listener {
  readonly port: number;
  /** Stops accepting, lets what is in flight end, then cuts what is left. */
  readonly close: (graceMs: number) => Promise<void>;
}

export function listen({ app, direct, unserved }: Door, host: string, port: number): Promise<Listener> {
  return new Promise((resolve, reject) => {
    const rest = getRequestListener(app.fetch, { hostname: host, errorHandler: unserved });
    const server = createServer(
      {
        headersTimeout: 10_000,
        requestTimeout: 30_000,
        connectionsCheckingInterval: 2_000,
        keepAliveTimeout: 65_000,
      },
      (request, response) => {
        if (!direct(request, response)) void rest(request, response);
      },
    );
    server.once("error", reject);
    // Node closes only connections that have had a request; ones that never sent any would be waited for.
    const answering = new Map<Socket, number>();
    // One function for all: thousands of polls would have a closure each.
    function gone(this: Socket): void {
      answering.delete(this);
    }
    function answered(this: ServerResponse): void {
      const { socket } = this.req;
      if (answering.has(socket)) answering.set(socket, (answering.get(socket) ?? 1) - 1);
    }
    server.on("connection", (socket: Socket) => {
      answering.set(socket, 0);
      // Each request that waits listens for its end, and any number may wait on one connection.
      socket.setMaxListeners(0);
      socket.on("close", gone);
    });
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      answering.set(socket, (answering.get(socket) ?? 0) + 1);
      response.on("close", answered);
    });
    const cut = (busyToo: boolean) => {
      for (const [socket, busy] of answering) {
        if (busyToo) socket.destroy();
        else if (busy === 0) socket.destroySoon();
      }
    };
    const close = (graceMs: number) =>
      new Promise<void>((done) => {
        // A request that is just being sent on a kept connection is still answered, and told to go elsewhere.
        const closingSince = Date.now();
        const idle = setInterval(() => Date.now() - closingSince > IDLE_GRACE_MS && cut(false), 20);
        const late = setTimeout(() => cut(true), graceMs);
        // Node's own close of an HTTP server also cuts answers that are not flushed yet.
        NetServer.prototype.close.call(server, () => {
          clearInterval(idle);
          clearTimeout(late);
          done();
        });
      });
    server.listen(port, host, () => {
      const address = server.address();
      resolve({ port: typeof address === "object" && address !== null ? address.port : port, close });
    });
  });
}
