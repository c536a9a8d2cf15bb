import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { readBody } from "../../../src/doors/http/body.ts";

test.each(["before it is read", "while it is read"])(
  "a body that is cut off is reported, %s",
  async (when) => {
    const server = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const socket = connect(port, "127.0.0.1");
    socket.write("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf");
    const [incoming]: IncomingMessage[] = await once(server, "request");
    if (!incoming) throw new Error("no request");
    const reading = when === "while it is read" ? readBody(incoming, 100) : undefined;
    const closed = once(incoming, "close");
    socket.destroy();
    await closed.catch(() => {});
    await expect(reading ?? readBody(incoming, 100)).rejects.toMatchObject({ code: "invalid_request" });
  },
  5_000,
);
