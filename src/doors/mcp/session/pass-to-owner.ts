/**
 * Passes a request of an MCP session on to the gateway that has the session: connections are dealt out in turn, so a
 * client's next connection reaches another gateway on the port. That gateway authenticates it again. Limit: only among the
 * gateways of one supervisor.
 */
import { request as sendRequest } from "node:http";
import { Readable } from "node:stream";
import type { Broker } from "../../../engine/broker.ts";
import { ownerOf } from "../../../gateways/siblings.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { INNER_SECRET_HEADER } from "../../http/inner-listener.ts";
import type { MountedRequest } from "../../http/mount.ts";
import { errorResponse } from "../errors.ts";

const HEADERS = [
  ...["accept", "authorization", "content-type", "host", "user-agent", "traceparent", "tracestate"],
  ...["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"],
] as const;

/** Undefined if the request belongs here, or to no session that a sibling has. */
export function passToOwner(
  { siblings, gateway }: Broker,
  incoming: MountedRequest,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<Response> | undefined {
  const owner = ownerOf(incoming.header("mcp-session-id") ?? "");
  if (!siblings || owner === undefined) return undefined;
  // A request that a sibling passed on is not passed on again.
  if (incoming.header(INNER_SECRET_HEADER) !== undefined) return undefined;
  const port = siblings.innerPortOf(owner, gateway);
  if (port === null) return undefined;
  const headers: Record<string, string> = { [INNER_SECRET_HEADER]: siblings.setup.inner_secret };
  for (const name of HEADERS) {
    const value = incoming.header(name);
    if (value !== undefined) headers[name] = value;
  }
  return new Promise((resolve) => {
    const { method, requestId } = incoming;
    const passed = sendRequest(
      { host: "127.0.0.1", port, path: "/mcp", method, headers, signal, agent: false },
      (answer) => {
        const { statusCode = 502 } = answer;
        const own = new Headers();
        for (const [name, value] of Object.entries(answer.headers)) {
          if (typeof value === "string" && !HOP_BY_HOP.has(name)) own.set(name, value);
        }
        const hasNoBody = statusCode === 204 || statusCode === 304;
        resolve(new Response(hasNoBody ? null : toWeb(answer), { status: statusCode, headers: own }));
      },
    );
    passed.on("error", () => {
      // It ended just now, and its sessions with it.
      const recovery = "Send 'initialize' without an Mcp-Session-Id for a new session. No work is lost.";
      const gone = new ErrandError("not_found", "The gateway that had this session has ended.", { recovery });
      resolve(errorResponse(gone, requestId));
    });
    passed.end(bytes);
  });
}

const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "content-length",
]);

function toWeb(answer: Readable): ReadableStream<Uint8Array> {
  const chunks = Readable.toWeb(answer).getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await chunks.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch {
        // The owner ended; the client sees the end of the stream.
        controller.close();
      }
    },
    cancel: (reason) => chunks.cancel(reason),
  });
}
