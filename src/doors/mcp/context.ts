/** One MCP request as its handler sees it: the caller, the client's capabilities, and the signals that end a wait. */

import {
  CLIENT_CAPABILITIES_META_KEY,
  MissingRequiredClientCapabilityError,
  type ServerContext,
  TRACEPARENT_META_KEY,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Principal } from "../../engine/access/access.ts";
import type { Quota } from "../../engine/access/quotas.ts";
import type { Broker } from "../../engine/broker.ts";
import { bodyHash } from "../../engine/delegations/idempotency.ts";
import { randomId } from "../../redis/shards.ts";
import { jsonObjectSchema } from "../../schema/json-object.ts";
import { isWrappedId, rawIdOf } from "../../util/rpc-ids.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import type { RequestScope } from "../http/request-scope.ts";
import { traceparentOf } from "../http/trace.ts";
import type { ClientPings } from "./session/client-pings.ts";

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";
/** The SDK's terms: 2026-07-28 is "modern"; 2025-11-25 and older, with sessions, are "legacy". */
export type Era = "modern" | "legacy";

/** A request id of this form counts as unique, like a UUID; a counter repeats in every process. */
const UNIQUE_ID = /^[\x21-\x7e]{16,128}$/;

const requestEnvelopeSchema = z.looseObject({
  [CLIENT_CAPABILITIES_META_KEY]: z.looseObject({
    extensions: jsonObjectSchema.optional(),
    elicitation: jsonObjectSchema.optional(),
  }),
});

/** The capabilities that a request of 2026-07-28 declares; none in the legacy era. */
function capabilitiesOf(envelope: unknown) {
  const parsed = requestEnvelopeSchema.safeParse(envelope);
  return parsed.success ? parsed.data[CLIENT_CAPABILITIES_META_KEY] : {};
}

export const declaresTasks = (envelope: unknown): boolean =>
  capabilitiesOf(envelope).extensions?.[TASKS_EXTENSION] !== undefined;

export const tasksRequiredError = () =>
  new MissingRequiredClientCapabilityError({
    requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
  });

/** Facts about the client that are not in the request. */
export interface ClientState {
  /** The client's name, from its handshake or the request. */
  readonly name?: string | undefined;
  /** Only in a session; without one the broker cannot send requests to the client. */
  readonly pings?: ClientPings | undefined;
}

export class McpContext {
  readonly request: AuthenticatedRequest;
  readonly broker: Broker;
  readonly principal: Principal;
  readonly era: Era;
  readonly clientName: string | undefined;
  /** Aborts when the client cancels the request or disconnects. */
  readonly canceled: AbortSignal;
  /** The client's answers to the inputRequests of an earlier round. */
  readonly inputResponses: Readonly<Record<string, unknown>> | undefined;
  /** The requestState of that round. The client may have forged it. */
  readonly requestState: string | undefined;
  readonly #server: ServerContext;
  readonly #pings: ClientPings | undefined;
  #progress = 0;

  constructor(request: AuthenticatedRequest, era: Era, server: ServerContext, client: ClientState = {}) {
    this.request = request;
    this.broker = request.broker;
    this.principal = request.principal;
    this.era = era;
    this.#server = server;
    this.clientName = client.name;
    this.#pings = client.pings;
    this.canceled = server.mcpReq.signal;
    this.inputResponses = server.mcpReq.inputResponses;
    const state = server.mcpReq.requestState<unknown>();
    this.requestState = typeof state === "string" ? state : undefined;
  }

  /** The client accepts a task instead of a result. */
  get supportsTasks(): boolean {
    return this.era === "modern" && declaresTasks(this.#server.mcpReq.envelope);
  }

  /** The client shows forms to its user, and retries the request with the answers. */
  get supportsForms(): boolean {
    const elicitation =
      this.era === "modern" ? capabilitiesOf(this.#server.mcpReq.envelope).elicitation : undefined;
    // Declared without a mode it means forms.
    return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
  }

  get wantsProgress(): boolean {
    return this.#server.mcpReq._meta?.progressToken !== undefined;
  }

  /** From the request's `_meta`, or else from the header of the HTTP request. */
  get traceparent(): string | undefined {
    return (
      traceparentOf(this.#server.mcpReq._meta?.[TRACEPARENT_META_KEY]) ??
      traceparentOf(this.request.header("traceparent"))
    );
  }

  async reportProgress(message: string): Promise<void> {
    const progressToken = this.#server.mcpReq._meta?.progressToken;
    if (progressToken === undefined || this.canceled.aborted) return;
    this.#progress += 1;
    const params = { progressToken, progress: this.#progress, message };
    // The notification fails only if the client disconnected, which ends the wait anyway.
    await this.#server.mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
  }

  /** Runs `work`, which may wait: it counts against `quota`, and ends with the request, the token or the gateway. */
  runWaiting<T>(
    wait_seconds: number,
    work: (signal: AbortSignal) => Promise<T>,
    quota: Quota | null = "polls",
  ): Promise<T> {
    const inScope = ({ signal }: RequestScope) => work(AbortSignal.any([signal, this.canceled]));
    return this.request.withScope(wait_seconds, inScope, quota);
  }

  /** Whether the client answers pings at all; the session's first call pings it to find out. */
  async answersPings(signal: AbortSignal): Promise<boolean> {
    return this.#pings?.answersPings(this.#ping, signal) ?? false;
  }

  /** Whether the client answers a ping now. */
  async isAlive(signal: AbortSignal): Promise<boolean> {
    return this.#pings?.isAlive(this.#ping, signal) ?? false;
  }

  /** Sends a ping on the stream of this request. */
  readonly #ping = (options: { readonly timeout: number; readonly signal: AbortSignal }) => {
    this.request.endTurn();
    return this.#server.mcpReq.send({ method: "ping" }, options);
  };

  /**
   * The idempotency key for a request without one. A retry of the same request gets the same key if the request can be
   * recognized: by its session and id, or by an id that looks unique. A counter without a session identifies
   * nothing, so such a request gets a random key.
   */
  idempotencyKeyFor(input: unknown): string {
    const { sessionId, mcpReq } = this.#server;
    const { id } = mcpReq;
    const isIdentified =
      sessionId !== undefined || UNIQUE_ID.test(isWrappedId(id) ? rawIdOf(id) : String(id));
    return `mcp:${isIdentified ? bodyHash([sessionId ?? null, id, input]) : randomId(26)}`;
  }
}
