/**
 * Sessions of 2025-11-25. None is stored (session-id.ts): any gateway serves a request, with a new server of the SDK. Only
 * a call in progress belongs to one gateway. Two messages for it come as requests of their own, to any gateway: the
 * answer to a ping, and a cancellation. If their call is not here, they are published to the other gateways. Limit:
 * pub/sub may lose one; then the client seems not to answer, or its call goes on.
 */
import {
  isInitializeRequest,
  isJSONRPCErrorResponse,
  isJSONRPCNotification,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type Server,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Broker } from "../../../engine/broker.ts";
import { keys } from "../../../redis/keys.ts";
import { randomId } from "../../../redis/shards.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { MISSING } from "../../../schema/wording.ts";
import { parseJson } from "../../../util/parse-json.ts";
import type { AuthenticatedRequest } from "../../http/authenticated-request.ts";
import type { ClientState } from "../context.ts";
import { errorResponse, withoutReservedCodes } from "../errors.ts";
import { CANCEL, Call } from "./call.ts";
import { KnownClients } from "./client-pings.ts";
import { newSession, sessionOf } from "./session-id.ts";

/** An answer to a ping, or a cancellation, is small. */
const PUBLISHED_CHARS = 4_096;

const publishedSchema = z.object({ owner: z.string(), message: z.unknown() });

export class Sessions {
  readonly #broker: Broker;
  readonly #createServer: (client: ClientState) => Server;
  /** The calls in progress at this gateway, by principal and session. */
  readonly #calls = new Map<string, Set<Call>>();
  readonly #clients: KnownClients;

  constructor(broker: Broker, createServer: (client: ClientState) => Server, pingMs?: number) {
    this.#broker = broker;
    this.#createServer = createServer;
    this.#clients = new KnownClients(pingMs);
    broker.bus
      .subscribe(keys.mcpMessages, (text) => {
        const { data } = publishedSchema.safeParse(parseJson(text));
        if (data && isForCall(data.message)) this.#deliver(data.owner, data.message);
      })
      .catch((error: unknown) => broker.log.debug({ err: String(error) }, "mcp messages not subscribed"));
  }

  async serve(request: AuthenticatedRequest, sdkRequest: Request, body: unknown): Promise<Response> {
    const { requestId } = request;
    const principal = request.principal.text;
    const broker = this.#broker.id;
    const given = sdkRequest.headers.get("mcp-session-id");
    const isNew = given === null && isInitializeRequest(body);
    if (given === null && !isNew) return errorResponse(noSession(), requestId);
    const session = isNew
      ? newSession([broker, principal], randomId(26), body.params.clientInfo.name)
      : sessionOf([broker, principal], given ?? "");
    if (!session) return errorResponse(unknownSession(), requestId);
    const owner = `${principal} ${session.id}`;
    const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
    const ids = messages.flatMap((message) => callIdOf(message) ?? []);
    const call = new Call(session.id, isNew, ids, () => this.#remove(owner, call));
    await this.#createServer({
      name: session.clientName,
      pings: this.#clients.of(principal, session.id),
    }).connect(call);
    if (ids.length > 0) this.#add(owner, call);
    const response = await call.handleRequest(sdkRequest, { parsedBody: body });
    if (!response.ok) this.#remove(owner, call);
    else for (const message of messages) if (isForCall(message)) this.#pass(owner, message);
    return withoutReservedCodes(response, requestId);
  }

  /** To its call here, or else to the other gateways. */
  #pass(owner: string, message: JSONRPCMessage): void {
    if (this.#deliver(owner, message)) return;
    const text = JSON.stringify({ owner, message });
    if (text.length > PUBLISHED_CHARS) return;
    const { bus, log } = this.#broker;
    bus
      .publish(keys.mcpMessages, text)
      .catch((error: unknown) => log.debug({ err: String(error) }, "mcp message not published"));
  }

  #deliver(owner: string, message: JSONRPCMessage): boolean {
    return [...(this.#calls.get(owner) ?? [])].some((call) => call.receive(message));
  }

  #add(owner: string, call: Call): void {
    const calls = this.#calls.get(owner);
    if (calls) calls.add(call);
    else this.#calls.set(owner, new Set([call]));
  }

  #remove(owner: string, call: Call): void {
    const calls = this.#calls.get(owner);
    calls?.delete(call);
    if (calls?.size === 0) this.#calls.delete(owner);
  }
}

/** The id of a request; undefined for any other message. */
function callIdOf(message: unknown): unknown {
  const { method, id } = Object(message);
  return method === undefined ? undefined : id;
}

/** An answer of the client, or a cancellation. */
const isForCall = (message: unknown): message is JSONRPCMessage =>
  isJSONRPCNotification(message)
    ? message.method === CANCEL
    : isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message);

function noSession(): ErrandError {
  return new ErrandError(
    "invalid_request",
    "The Mcp-Session-Id header is missing. Send 'initialize' first, or use protocol version 2026-07-28.",
    { details: { issues: [{ path: "Mcp-Session-Id", reason: MISSING }] } },
  );
}

function unknownSession(): ErrandError {
  const recovery =
    "Send 'initialize' without an Mcp-Session-Id for a new session. No work is lost with the old one.";
  return new ErrandError("not_found", "There is no such session.", { recovery });
}
