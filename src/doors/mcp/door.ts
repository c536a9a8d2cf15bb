/**
 * `/mcp`: Streamable HTTP in both eras. A request of 2026-07-28 stands by itself; one of 2025-11-25 belongs to a
 * session. Limit: no stream from the broker to the client beside the answer to a request (GET is 405): nothing here
 * happens that a client would have to be told unasked.
 */
import { createMcpHandler, isLegacyRequest, type ServerContext } from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Broker } from "../../engine/context.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { Call } from "../call.ts";
import { declaresTasks, tasksRequired } from "./context.ts";
import { errorResponse, withoutOldCodes } from "./errors.ts";
import { createServer } from "./server.ts";
import { Sessions } from "./sessions.ts";

const listenSchema = z.looseObject({
  id: z.union([z.string(), z.number()]),
  method: z.literal("subscriptions/listen"),
  params: z.looseObject({
    notifications: z.looseObject({ taskIds: z.array(z.unknown()).optional() }).optional(),
    _meta: z.unknown(),
  }),
});

/** Word of tasks may be asked for only by who knows what tasks are. */
function undeclared(id: string | number): Response {
  const { code, message, data } = tasksRequired();
  return Response.json({ jsonrpc: "2.0", id, error: { code, message, data } }, { status: 400 });
}

export const MCP_PATH = "/mcp";
export const MCP_METHODS = ["POST", "GET", "DELETE"] as const;

export interface McpDoor {
  readonly serve: (call: Call, method: string, headers: Headers, body: unknown) => Promise<Response>;
  readonly sessions: Sessions;
}

export interface McpOptions {
  readonly broker: Broker;
  readonly stopping: AbortSignal;
}

/** A request for the SDK: what it decides by, and no credential. */
function toRequest(method: string, headers: Headers, signal: AbortSignal): Request {
  const kept = new Headers(headers);
  kept.delete("authorization");
  kept.delete("content-length");
  if (method === "POST") kept.set("content-type", "application/json");
  // "Anything" and nothing at all take both of the types that an answer may have.
  const accept = kept.get("accept") ?? "*/*";
  if (accept.includes("*/*")) kept.set("accept", "application/json, text/event-stream");
  return new Request(`http://errand.invalid${MCP_PATH}`, { method, headers: kept, signal });
}

export function createMcpDoor({ broker, stopping }: McpOptions): McpDoor {
  const calls = new WeakMap<Request, Call>();
  const callOf = ({ http }: ServerContext): Call => {
    const call = http?.req && calls.get(http.req);
    if (!call) throw new TypeError("a message without its request");
    return call;
  };
  // Its words may be the client's.
  const onerror = (error: Error) => broker.log.debug({ err: error.name }, "mcp request refused");
  const modern = createMcpHandler(() => createServer({ era: "modern", callOf }), {
    legacy: "reject",
    onerror,
  });
  const sessions = new Sessions({
    clock: broker.clock,
    stopping,
    most: broker.quotas.most("sessions"),
    make: (around) => createServer({ era: "legacy", callOf, around }),
  });

  async function serve(call: Call, method: string, headers: Headers, body: unknown): Promise<Response> {
    const gone = new AbortController();
    call.onLost(() => gone.abort());
    const request = toRequest(method, headers, gone.signal);
    calls.set(request, call);
    if (method === "GET") {
      const refused = new ErrandError("not_found", "There is no stream to listen to; POST is how to ask.");
      const answer = errorResponse(refused, call.requestId, {
        status: 405,
        headers: new Headers({ allow: "POST, DELETE" }),
      });
      return answer;
    }
    if (method === "DELETE" || (await isLegacyRequest(request, body))) {
      return sessions.serve(call, request, body);
    }
    const listens = listenSchema.safeParse(body);
    // Of what can be listened for nothing is offered, so the SDK ends that stream at once.
    if (listens.success) {
      const { id, params } = listens.data;
      if (params.notifications?.taskIds && !declaresTasks(params._meta)) return undeclared(id);
    }
    return withoutOldCodes(await modern.fetch(request, { parsedBody: body }), call.requestId);
  }
  return { serve, sessions };
}
