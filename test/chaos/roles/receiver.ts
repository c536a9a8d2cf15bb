/**
 * Receives callbacks, push notifications and the notifications of subscriptions, and verifies them. Answers some with an
 * error, so that they are repeated.
 */
import { createServer } from "node:http";
import { z } from "zod";
import { CallbackError, verifyCallback } from "../../../src/client/callback.ts";
import { noticed } from "./notices.ts";
import type { Part } from "./part.ts";

const toldSchema = z.looseObject({
  delegation_id: z.string().optional(),
  seq: z.number().optional(),
  state: z.string().optional(),
});

export async function runReceiver(part: Part): Promise<void> {
  const { receiver } = part.setup;
  const server = createServer(async (request, response) => {
    response.on("error", () => undefined);
    let body = "";
    for await (const chunk of request) body += chunk;
    if (part.random.chance(0.05)) return void response.writeHead(503).end();
    const { pathname, searchParams } = new URL(request.url ?? "/", receiver.noticeUrl);
    const isNotice = pathname === "/notice";
    let genuine = true;
    try {
      verifyCallback(body, request.headers, [receiver.secret]);
    } catch (error) {
      if (!(error instanceof CallbackError)) throw error;
      // A fault may set the gateway's clock minutes wrong; then the receiver must refuse the call.
      if (error.code === "old") return void response.writeHead(400).end();
      // A notification is signed alike, and is no event: that is found last.
      genuine = error.code === "invalid" && isNotice;
    }
    if (isNotice) {
      noticed(part, searchParams.get("as") ?? "", body, genuine);
      // It has it; the broker does not know, and repeats it.
      return void response.writeHead(part.random.chance(0.1) ? 503 : 204).end();
    }
    const { delegation_id: id = "", seq = 0, state = "failed" } = toldSchema.parse(JSON.parse(body));
    part.recorder.note({ row: "delivery", kind: "callback", id, seq, state, genuine });
    response.writeHead(204).end();
  });
  server.listen(receiver.port, "127.0.0.1");
  while (!part.finished) await part.sleep(500);
}
