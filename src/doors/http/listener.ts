/** The HTTP server: plain requests go the direct way, all others through Hono. Limit: HTTP/1.1; TLS is a proxy's. */
import { createServer, type ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { LIMITS } from "../../schema/limits.ts";
import type { HttpApp } from "./app.ts";
import { Connection } from "./connection.ts";

/** How long a kept connection without a request stays open once the gateway stops. */
const IDLE_GRACE_MS = 300;

/** Methods whose bodies are read. */
const BODIED: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);
/** How often it looks for readers that have stopped. */
const LOOK_MS = 2_000;

/**
 * Connections that wait to be accepted: after a restart all clients come back at once, and one that finds no room tries
 * again only after 1, 3, 7, 15 s. The kernel may hold fewer (`net.core.somaxconn`).
 */
const BACKLOG = 65_535;

export interface Listener {
  readonly port: number;
  /** The number of connections with unread bytes. */
  readonly unread: () => number;
  /** Stops accepting, lets what is in flight end, then cuts what is left. */
  readonly close: (graceMs: number) => Promise<void>;
}

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly now: () => number;
  /** Closes connections whose requests arrive too slowly; set by tests only. */
  readonly arrival?: Arrival | undefined;
}

/** How long a request may take to arrive, ms. */
export interface Arrival {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly lookMs: number;
}

const ARRIVAL: Arrival = {
  headersMs: LIMITS.header_seconds.value * 1000,
  requestMs: LIMITS.request_seconds.value * 1000,
  lookMs: LOOK_MS,
};

export function listen(
  { app, direct, unserved }: HttpApp,
  { host, port, now, arrival = ARRIVAL }: ListenOptions,
): Promise<Listener> {
  return new Promise((resolve, reject) => {
    const rest = getRequestListener(app.fetch, { hostname: host, errorHandler: unserved });
    const server = createServer(
      {
        headersTimeout: arrival.headersMs,
        requestTimeout: arrival.requestMs,
        connectionsCheckingInterval: arrival.lookMs,
        keepAliveTimeout: 65_000,
      },
      (request, response) => {
        const line = lines.get(request.socket);
        if (!line) return;
        response.on("close", answered);
        const begun = line.begin(() => {
          if (request.socket.destroyed) return;
          if (!direct(request, response)) void rest(request, response);
        });
        if (!begun) request.socket.destroy();
        // Unread, a body that nobody wants would keep the end of the connection from being noticed.
        else if (!BODIED.has(request.method ?? "")) request.resume();
      },
    );
    server.maxConnections = LIMITS.connections.value;
    // Stays for good: a failed accept (too many open files) must not end the process.
    server.on("error", reject);
    // Node closes only connections that have had a request; ones that never sent any would be waited for.
    const lines = new Map<Socket, Connection>();
    // One function for all: thousands of polls would have a closure each.
    function gone(this: Socket): void {
      lines.delete(this);
    }
    function answered(this: ServerResponse): void {
      lines.get(this.req.socket)?.end();
    }
    server.on("connection", (socket: Socket) => {
      lines.set(socket, new Connection());
      // Each request that waits listens for its end, and any number may wait on one connection.
      socket.setMaxListeners(0);
      socket.on("close", gone);
    });
    const stalls = setInterval(() => {
      const at = now();
      for (const [socket, line] of lines) if (line.isStalled(socket, at)) socket.destroy();
    }, LOOK_MS).unref();
    server.on("close", () => clearInterval(stalls));
    const cut = (busyToo: boolean) => {
      for (const [socket, { busy }] of lines) {
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
    server.listen({ port, host, backlog: BACKLOG }, () => {
      const address = server.address();
      const unread = () => [...lines.keys()].filter(({ writableLength }) => writableLength > 0).length;
      resolve({ port: typeof address === "object" && address !== null ? address.port : port, unread, close });
    });
  });
}
