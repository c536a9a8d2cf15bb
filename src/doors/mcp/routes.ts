/**
 * `/mcp`: Streamable HTTP in both eras. A request of 2026-07-28 is stateless; one of 2025-11-25 belongs to a session.
 * Limit: no GET, because the server sends messages only on the stream of a request, and no DELETE, because it keeps nothing
 * of a session.
 */
import { createMcpHandler, isLegacyRequest, type ServerContext } from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Broker } from "../../engine/broker.ts";
import { hasWrapped } from "../../util/rpc-ids.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { parseBody } from "../http/body.ts";
import type { Mount, MountedRequest } from "../http/mount.ts";
import { problemResponse, toErrandError } from "../http/problem.ts";
import { requireBounded } from "./bounds.ts";
import { type ClientState, declaresTasks, tasksRequiredError } from "./context.ts";
import { errorResponse, withoutReservedCodes } from "./errors.ts";
import { paramsProblem } from "./params.ts";
import { requestIdIn, withRequestId } from "./request-id.ts";
import { createServer, type McpTestExtension, type RunInTurn } from "./server.ts";
import { Sessions } from "./session/sessions.ts";

const listenSchema = z.looseObject({
  id: z.union([z.string(), z.number()]),
  method: z.literal("subscriptions/listen"),
  params: z.looseObject({
    notifications: z.looseObject({ taskIds: z.array(z.unknown()).optional() }).optional(),
    _meta: z.unknown(),
  }),
});

/** Refuses a subscription to tasks from a client that did not declare the extension. */
function refuseTaskSubscription(id: string | number): Response {
  const { code, message, data } = tasksRequiredError();
  return Response.json({ jsonrpc: "2.0", id, error: { code, message, data } }, { status: 400 });
}

const PATH = "/mcp";
/** The headers that the SDK reads. */
const SDK_HEADERS = [
  "accept",
  "mcp-protocol-version",
  "mcp-method",
  "mcp-name",
  "mcp-session-id",
  "user-agent",
] as const;
const ACCEPT_ANY = "application/json, text/event-stream";

/** The SDK refuses null, which some clients send for a tool without arguments. */
function dropNullArguments(message: unknown): void {
  if (isCallWithNull(message)) delete message.params.arguments;
}

function isCallWithNull(message: unknown): message is { params: { arguments?: null } } {
  const { method, params } = Object(message);
  return method === "tools/call" && Object(params).arguments === null;
}

/** The request for the SDK, without its credential; the body has been read. */
function toSdkRequest({ header }: MountedRequest, signal: AbortSignal): Request {
  const headers = new Headers({ "content-type": "application/json" });
  for (const name of SDK_HEADERS) {
    const value = header(name);
    if (value !== undefined) headers.set(name, value);
  }
  // `*/*` and a missing header accept both media types of a response.
  if ((headers.get("accept") ?? "*/*").includes("*/*")) headers.set("accept", ACCEPT_ANY);
  return new Request(`http://errand.invalid${PATH}`, { method: "POST", headers, signal });
}

export interface McpOptions {
  readonly broker: Broker;
  /** Runs a tool call in its principal's turn. */
  readonly runInTurn: RunInTurn;
  readonly extension?: McpTestExtension | undefined;
  /** How long a client has to answer a ping. */
  readonly pingMs?: number | undefined;
}

export function mcpRoutes({ broker, runInTurn, extension, pingMs }: McpOptions): readonly Mount[] {
  const { log } = broker;
  const requests = new WeakMap<Request, AuthenticatedRequest>();
  const requestOf = ({ http }: ServerContext): AuthenticatedRequest => {
    const request = http?.req && requests.get(http.req);
    if (!request) throw new TypeError("an MCP message without its HTTP request");
    return request;
  };
  const modern = createMcpHandler(() => createServer({ era: "modern", requestOf, extension }), {
    legacy: "reject",
    // The message may quote the client.
    onerror: (error) => log.debug({ err: error.name }, "mcp request refused"),
  });
  const createSessionServer = (client: ClientState) =>
    createServer({
      era: "legacy",
      // A session answers on a stream, so the turn of the HTTP request ends before the tool runs.
      requestOf: (context) => requestOf(context).part(),
      runInTurn,
      extension,
      client,
    });
  const sessions = new Sessions(broker, createSessionServer, pingMs);

  async function answer(incoming: MountedRequest, parsed: (body: unknown) => void): Promise<Response> {
    const { requestId, header } = incoming;
    const { request, bytes } = await incoming.authenticate();
    const body = parseBody(bytes, header("content-type"), { wrapsIds: true, parsed });
    requireBounded(body, bytes.byteLength);
    for (const message of Array.isArray(body) ? body : [body]) dropNullArguments(message);
    const problem = paramsProblem(body);
    if (problem) {
      const like = problemResponse(problem, requestId, broker.id);
      return errorResponse(problem, requestId, like, { isOfParams: true });
    }
    const lost = new AbortController();
    request.onUndelivered(() => lost.abort());
    const sdkRequest = toSdkRequest(incoming, lost.signal);
    requests.set(sdkRequest, request);
    if (await isLegacyRequest(sdkRequest, body)) return sessions.serve(request, sdkRequest, body);
    const subscription = listenSchema.safeParse(body);
    // The server offers no notifications, so the SDK ends the stream at once.
    if (subscription.success) {
      const { id, params } = subscription.data;
      if (params.notifications?.taskIds && !declaresTasks(params._meta)) return refuseTaskSubscription(id);
    }
    return withoutReservedCodes(await modern.fetch(sdkRequest, { parsedBody: body }), requestId);
  }

  const handle = async (incoming: MountedRequest): Promise<Response> => {
    let id: ReturnType<typeof requestIdIn>;
    let isWrapped = false;
    const parsed = (body: unknown) => {
      id = requestIdIn(body);
      isWrapped = hasWrapped(body);
    };
    const response = await answer(incoming, parsed).catch((error: unknown) => {
      const { requestId, method } = incoming;
      const refused = toErrandError(error, log, requestId, method);
      return errorResponse(refused, requestId, problemResponse(refused, requestId, broker.id));
    });
    return withRequestId(response, id, isWrapped);
  };
  return [{ methods: ["POST"], path: PATH, handle }];
}
