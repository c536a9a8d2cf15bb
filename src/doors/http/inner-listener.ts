/**
 * A second listener, for requests that other gateways of the same supervisor pass on. On the loopback interface, and only
 * with the supervisor's secret; every request is authenticated like any other.
 */
import { timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import type { HttpApp } from "./app.ts";

export const INNER_SECRET_HEADER = "x-errand-inner";

export interface InnerListener {
  readonly port: number;
  /** Waits for requests in progress, then closes all connections. */
  readonly close: (graceMs: number) => Promise<void>;
}

export function listenForSiblings(app: Pick<HttpApp, "serve">, secret: string): Promise<InnerListener> {
  const server = createServer((request, response) => {
    if (isEqual(request.headers[INNER_SECRET_HEADER], secret)) app.serve(request, response);
    else response.writeHead(403, { connection: "close" }).end();
  });
  return new Promise((resolve, reject) => {
    server.on("error", reject);
    // Exclusive: otherwise the supervisor would deal its connections out, too.
    server.listen({ port: 0, host: "127.0.0.1", exclusive: true }, () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      resolve({ port, close: (graceMs) => closed(graceMs) });
    });
  });
  function closed(graceMs: number): Promise<void> {
    return new Promise((done) => {
      const late = setTimeout(() => server.closeAllConnections(), graceMs);
      server.close(() => {
        clearTimeout(late);
        done();
      });
    });
  }
}

function isEqual(given: string | readonly string[] | undefined, secret: string): boolean {
  if (typeof given !== "string") return false;
  const [a, b] = [Buffer.from(given), Buffer.from(secret)];
  return a.length === b.length && timingSafeEqual(a, b);
}
