/**
 * `/mcp`: Streamable HTTP in both eras. A request of 2026-07-28 stands by itself; one of 2025-11-25 belongs to a
 * session. Limit: no stream from the broker to the client beside the answer to a request (GET is 405): nothing here
 * happens that a client would have to be told unasked.
 */
import { createMcpHandler, isLegacyRequest, type ServerContext } from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Broker } from "../../engine/broker.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { parseBody } from "../http/body.ts";
import type { Mount, MountedRequest } from "../http/mount.ts";
import { problemResponse, toErrandError } from "../http/problem.ts";
import { declaresTasks, tasksRequired } from "./context.ts";
import { errorResponse, withoutOldCodes } from "./errors.ts";
import { createServer, type Extension, type InTurn } from "./server.ts";
import { Sessions } from "./session/sessions.ts";
import { ClientPings } from "./tools/lease-delivery.ts";

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

const PATH = "/mcp";
/** What the SDK decides by. */
const HEADERS = [
  "accept",
  "mcp-protocol-version",
  "mcp-method",
  "mcp-name",
  "mcp-session-id",
  "user-agent",
] as const;
const BOTH = "application/json, text/event-stream";

/** A request for the SDK, without its credential; the body has been read. */
function toRequest({ method, header }: MountedRequest, signal: AbortSignal): Request {
  const headers = new Headers(method === "POST" ? { "content-type": "application/json" } : {});
  for (const name of HEADERS) {
    const value = header(name);
    if (value !== undefined) headers.set(name, value);
  }
  // "Anything" and nothing at all take both of the types that an answer may have.
  if ((headers.get("accept") ?? "*/*").includes("*/*")) headers.set("accept", BOTH);
  return new Request(`http://errand.invalid${PATH}`, { method, headers, signal });
}

function noStream(requestId: string): Response {
  const refused = new ErrandError("not_found", "There is no stream to listen to; POST is how to ask.");
  const headers = new Headers({ allow: "POST, DELETE" });
  return errorResponse(refused, requestId, { status: 405, headers });
}

export interface McpOptions {
  readonly broker: Broker;
  readonly stopping: AbortSignal;
  /** Runs a tool call in its principal's turn. */
  readonly inTurn: InTurn;
  readonly extension?: Extension | undefined;
  /** How long a client may take to answer a ping. */
  readonly pingMs?: number | undefined;
}

export function mcpRoutes({ broker, stopping, inTurn, extension, pingMs }: McpOptions): readonly Mount[] {
  const { log, clock, quotas } = broker;
  const calls = new WeakMap<Request, AuthenticatedRequest>();
  const callOf = ({ http }: ServerContext): AuthenticatedRequest => {
    const call = http?.req && calls.get(http.req);
    if (!call) throw new TypeError("a message without its request");
    return call;
  };
  const modern = createMcpHandler(() => createServer({ era: "modern", callOf, extension }), {
    legacy: "reject",
    // Its words may be the client's.
    onerror: (error) => log.debug({ err: error.name }, "mcp request refused"),
  });
  const sessions = new Sessions({
    clock,
    stopping,
    most: quotas.most("sessions"),
    make: (around) =>
      createServer({
        era: "legacy",
        // A session answers on a stream, so the turn of the HTTP request is over before the tool runs.
        callOf: (context) => callOf(context).part(),
        inTurn,
        around,
        extension,
        pings: new ClientPings(pingMs),
      }),
  });

  async function answer(incoming: MountedRequest): Promise<Response> {
    const { method, requestId, header } = incoming;
    const { request: call, bytes } = await incoming.authenticate();
    if (method === "GET") return noStream(requestId);
    const body = parseBody(bytes, header("content-type"));
    const gone = new AbortController();
    call.onLost(() => gone.abort());
    const request = toRequest(incoming, gone.signal);
    calls.set(request, call);
    if (method === "DELETE" || (await isLegacyRequest(request, body))) {
      return sessions.serve(call, request, body);
    }
    const listens = listenSchema.safeParse(body);
    // Of what can be listened for nothing is offered, so the SDK ends that stream at once.
    if (listens.success) {
      const { id, params } = listens.data;
      if (params.notifications?.taskIds && !declaresTasks(params._meta)) return undeclared(id);
    }
    return withoutOldCodes(await modern.fetch(request, { parsedBody: body }), requestId);
  }

  const handle = (incoming: MountedRequest): Promise<Response> =>
    answer(incoming).catch((error: unknown) => {
      const { requestId, method } = incoming;
      const refused = toErrandError(error, log, requestId, method);
      return errorResponse(refused, requestId, problemResponse(refused, requestId));
    });
  return [{ methods: ["POST", "GET", "DELETE"], path: PATH, handle }];
}
