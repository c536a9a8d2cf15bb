/** The HTTP server: accepts connections and passes their requests to the app, in turn. Limit: HTTP/1.1 without TLS. */
import { createServer, type ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { LIMITS } from "../../schema/limits.ts";
import { networkOf } from "./address-list.ts";
import { AddressQueue } from "./address-queue.ts";
import type { HttpApp } from "./app.ts";
import { headerBytes } from "./connection.ts";
import { Connections } from "./connections.ts";
import { type ForwardedHeaders, isForwarded, TrustedProxies } from "./trusted-proxies.ts";

/**
 * How long an idle keep-alive connection stays open once the gateway stops: 300 ms, in ticks, so that a stall of the
 * process does not count.
 */
const TICK_MS = 20;
const IDLE_GRACE_TICKS = 15;
/**
 * The same while other gateways keep serving: nobody waits for this one, and few clients pause for so long between two
 * requests.
 */
const HANDOVER_TICKS = 100;

/** Methods whose bodies are read. */
const BODIED: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);
/** The interval of the checks for stalled readers. */
const CHECK_MS = 2_000;

/**
 * How many connections may wait to be accepted: after a restart all clients reconnect at once, and a client that is turned
 * away retries only after 1, 3, 7, 15 s. The kernel may allow fewer (`net.core.somaxconn`).
 */
const BACKLOG = 65_535;

export interface CloseOptions {
  /** Idle connections stay open for 300 ms, for requests that are on their way. Without it, such a request is lost. */
  readonly idleGrace?: boolean;
  /** Other gateways on this port go on: requests are served, and idle connections stay open for two seconds. */
  readonly handover?: boolean;
}

export interface Listener {
  readonly port: number;
  /** The number of connections with unread bytes. */
  readonly unread: () => number;
  /** The number of connections with a request in progress. */
  readonly busy: () => number;
  /** The bytes of headers in memory that are counted: of one principal or address, or of all. */
  readonly headerBytes: (owner?: string) => number;
  /** Stops accepting, waits for requests in progress, then closes all connections. */
  readonly close: (graceMs: number, options?: CloseOptions) => Promise<void>;
}

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly now: () => number;
  /** How long an idle connection stays open. */
  readonly keepAliveMs?: number | undefined;
  /** Only tests set it. */
  readonly arrival?: ArrivalTimeouts | undefined;
  /** The most connections, and the most of one address on which no valid token was shown. Only tests set them. */
  readonly most?: number | undefined;
  readonly mostUnknown?: number | undefined;
  readonly proxies?: TrustedProxies;
  /** Called once, with the peer that sent forwarded addresses without being a trusted proxy. */
  readonly onUntrusted?: (peer: string) => void;
}

/** How long a request may take to arrive before its connection is closed, and how often this is checked, in ms. */
export interface ArrivalTimeouts {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly checkMs: number;
}

const ARRIVAL: ArrivalTimeouts = {
  headersMs: LIMITS.header_seconds.value * 1000,
  requestMs: LIMITS.request_seconds.value * 1000,
  checkMs: CHECK_MS,
};

/** Longer than common balancers keep an idle connection (60 s), so that none sends a request to a closed one. */
const KEEP_ALIVE_MS = 65_000;

export function listen(
  app: Pick<HttpApp, "serve">,
  {
    host,
    port,
    now,
    keepAliveMs = KEEP_ALIVE_MS,
    arrival = ARRIVAL,
    most,
    mostUnknown,
    proxies = new TrustedProxies(),
    onUntrusted = () => {},
  }: ListenOptions,
): Promise<Listener> {
  let hasWarned = false;
  const warnOnce = (peer: string, headers: ForwardedHeaders) => {
    if (hasWarned || !isForwarded(headers) || proxies.has(peer)) return;
    hasWarned = true;
    onUntrusted(peer);
  };
  return new Promise((resolve, reject) => {
    const addresses = new AddressQueue();
    const server = createServer(
      {
        headersTimeout: arrival.headersMs,
        requestTimeout: arrival.requestMs,
        connectionsCheckingInterval: arrival.checkMs,
        keepAliveTimeout: keepAliveMs,
      },
      (request, response) => {
        const connection = connections.get(request.socket);
        if (!connection) return;
        response.on("close", closed);
        const { socket, headers } = request;
        const mustWait = connection.isBusy;
        const bearsToken = headers.authorization !== undefined;
        warnOnce(socket.remoteAddress ?? "", headers);
        if (!mustWait) connections.begin(connection, socket, headers);
        const serve = () => {
          if (socket.destroyed) return;
          if (mustWait) connections.begin(connection, socket, headers);
          const answer = () => {
            if (socket.destroyed) return false;
            app.serve(request, response);
            return true;
          };
          if (connection.isKnown && bearsToken) answer();
          else addresses.add(networkOf(connection.client), bearsToken, answer);
        };
        const hasRoom = connection.begin(headerBytes(request.rawHeaders), serve, bearsToken);
        if (!hasRoom) request.socket.destroy();
        // An unread body would hide the end of the connection.
        else if (!BODIED.has(request.method ?? "")) request.resume();
      },
    );
    // Node reads up to 2000 headers: newer versions answer more with a bare 431, older ones drop them. So that the answer
    // names our limit, it is checked with each request.
    // This listener is never removed: a failed accept (too many open files) must not end the process.
    server.on("error", reject);
    // Closed by `cut`, because Node's close waits for connections that never sent a request.
    const connections = new Connections({
      ...(most !== undefined && { most }),
      ...(mostUnknown !== undefined && { mostUnknown }),
      proxies,
    });
    // Shared functions: closures for each of thousands of connections would take memory.
    function gone(this: Socket): void {
      connections.delete(this);
    }
    function closed(this: ServerResponse): void {
      connections.end(this.req.socket);
    }
    server.on("connection", (socket: Socket) => {
      if (!connections.add(socket)) return;
      // Each waiting request listens for the end of its socket, and any number may wait on one connection.
      socket.setMaxListeners(0);
      socket.on("close", gone);
    });
    const stalls = setInterval(() => {
      const at = now();
      for (const [socket, connection] of connections.entries()) {
        if (connection.isStalled(socket, at)) socket.destroy();
      }
      connections.check();
    }, CHECK_MS).unref();
    server.on("close", () => clearInterval(stalls));
    server.on("error", () => server.listening || clearInterval(stalls));
    const cut = (busyToo: boolean) => {
      for (const [socket, { isBusy }] of connections.entries()) {
        if (busyToo) socket.destroy();
        else if (!isBusy) socket.destroySoon();
      }
    };
    const close = (graceMs: number, { idleGrace = true, handover = false }: CloseOptions = {}) =>
      new Promise<void>((done) => {
        // A request that arrives now on an idle connection still gets a response, with `connection: close`.
        // Counts ticks, not time: after a stall of this process, requests are read before the grace ends.
        let ticksLeft = idleGrace ? (handover ? HANDOVER_TICKS : IDLE_GRACE_TICKS) : 0;
        const idle = setInterval(() => {
          ticksLeft -= 1;
          if (ticksLeft < 0) setImmediate(() => cut(false));
        }, TICK_MS);
        const late = setTimeout(() => cut(true), graceMs);
        // http.Server's own close also cuts responses that are not flushed yet.
        NetServer.prototype.close.call(server, () => {
          clearInterval(idle);
          clearTimeout(late);
          done();
        });
      });
    server.listen({ port, host, backlog: BACKLOG }, () => {
      const address = server.address();
      const unread = () =>
        [...connections.entries()].filter(([{ writableLength }]) => writableLength > 0).length;
      const busy = () => [...connections.entries()].filter(([, { isBusy }]) => isBusy).length;
      const bound = typeof address === "object" && address !== null ? address.port : port;
      const held = (owner?: string) => connections.headerBytes(owner);
      resolve({ port: bound, unread, busy, headerBytes: held, close });
    });
  });
}
