/** Subscribers that each hold an event stream and read it. Limit: they discard the events. */
import { connect, type Socket } from "node:net";
import { z } from "zod";
import { serve } from "../remote.ts";

const loadSchema = z.object({ url: z.string(), tokens: z.array(z.string()), streams: z.number() });

let sockets: Socket[] = [];

function open(url: string, token: string): Promise<Socket> {
  const { hostname, port, host } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.write(
      `GET /v1/events HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\naccept: text/event-stream\r\n\r\n`,
    );
    let head = "";
    const read = (chunk: Buffer) => {
      head += chunk.toString("latin1");
      // The first line of the stream itself: now the stream is open.
      if (!head.includes("retry:")) return;
      socket.off("data", read);
      socket.resume();
      if (head.startsWith("HTTP/1.1 200")) resolve(socket);
      else reject(new Error(head.slice(0, 200)));
    };
    socket.on("data", read);
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`closed: ${head.slice(0, 200)}`)));
  });
}

serve({
  async start(args) {
    const { url, tokens, streams } = loadSchema.parse(args);
    const each = Math.ceil(streams / tokens.length);
    for (const token of tokens) {
      const some = Math.min(each, streams - sockets.length);
      sockets.push(...(await Promise.all(Array.from({ length: some }, () => open(url, token)))));
    }
  },
  stop() {
    for (const socket of sockets) socket.destroy();
    sockets = [];
  },
});
