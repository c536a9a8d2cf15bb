/** An endpoint for callbacks: stores the calls, and answers with the given status. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import { listen } from "./listen.ts";

export interface Received {
  readonly path?: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export async function startReceiver(answer: (count: number) => number | Promise<number> = () => 204) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", async () => {
      received.push({ path: request.url ?? "", headers: request.headers, body });
      const status = await answer(received.length);
      response.writeHead(status, status === 302 ? { location: "/elsewhere" } : {}).end();
    });
  });
  const port = await listen(server);
  return { url: `http://127.0.0.1:${port}/hook`, port, received };
}
