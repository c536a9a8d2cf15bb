/** A forward proxy: tunnels (CONNECT) and forwards absolute URLs, for names that only it knows. */
import { createServer, request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface ProxyRules {
  /** Where every name leads. */
  to: number;
  /** The credentials that it requires, `user:password`. */
  credentials?: string;
  /** The status of its answer to CONNECT; default 200, and then it tunnels. */
  tunnelStatus?: number;
}

export async function startProxy(rules: ProxyRules) {
  /** The first line of each request, without the version. */
  const seen: string[] = [];
  /** The first bytes that were sent through each tunnel. */
  const tunneled: Buffer[] = [];
  const sockets = new Set<Socket>();
  const isAllowed = (header: string | undefined) =>
    rules.credentials === undefined ||
    header === `Basic ${Buffer.from(rules.credentials).toString("base64")}`;
  const server = createServer((incoming, outgoing) => {
    seen.push(`${incoming.method} ${incoming.url}`);
    if (!isAllowed(incoming.headers["proxy-authorization"])) {
      outgoing.writeHead(407, { "proxy-authenticate": "Basic" }).end("<html>denied</html>");
      return;
    }
    const { pathname, search, host } = new URL(incoming.url ?? "");
    const { "proxy-authorization": _, ...headers } = incoming.headers;
    const forwarded = httpRequest(
      { port: rules.to, method: incoming.method, path: pathname + search, headers: { ...headers, host } },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    forwarded.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
  server.on("connect", (incoming, socket: Socket) => {
    seen.push(`CONNECT ${incoming.url}`);
    sockets.add(socket);
    socket.on("error", () => undefined);
    const status = isAllowed(incoming.headers["proxy-authorization"]) ? (rules.tunnelStatus ?? 200) : 407;
    if (status !== 200) {
      socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const target = connect(rules.to, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.once("data", (chunk: Buffer) => tunneled.push(chunk));
      socket.pipe(target).pipe(socket);
    });
    sockets.add(target);
    target.on("error", () => socket.destroy());
    socket.on("close", () => target.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { place: `127.0.0.1:${address.port}`, seen, tunneled, rules };
}
