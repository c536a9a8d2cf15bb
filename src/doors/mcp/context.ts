/**
 * One call of a tool as its handler sees it: who calls, what its client can do, until when to wait. Limit: lives as
 * long as the request.
 */
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
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import type { RequestScope } from "../http/request-scope.ts";
import { traceparentOf } from "../http/trace.ts";
import type { ClientPings } from "./tools/lease-delivery.ts";

export const TASKS = "io.modelcontextprotocol/tasks";
export type Era = "modern" | "legacy";

/** Ids that are nobody else's by their making; a counter's are everybody's. */
const UNIQUE_ID = /^[\x21-\x7e]{16,128}$/;

const envelopeSchema = z.looseObject({
  [CLIENT_CAPABILITIES_META_KEY]: z.looseObject({
    extensions: z.record(z.string(), z.unknown()).optional(),
    elicitation: z.record(z.string(), z.unknown()).optional(),
  }),
});

/** What the client says with a request of 2026-07-28 that it can do; nothing in the other era. */
function capabilitiesOf(envelope: unknown) {
  const found = envelopeSchema.safeParse(envelope);
  return found.success ? found.data[CLIENT_CAPABILITIES_META_KEY] : {};
}

export const declaresTasks = (envelope: unknown): boolean =>
  capabilitiesOf(envelope).extensions?.[TASKS] !== undefined;

export const tasksRequired = () =>
  new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS]: {} } } });

export class Context {
  readonly call: AuthenticatedRequest;
  readonly broker: Broker;
  readonly principal: Principal;
  readonly era: Era;
  /** Aborts when the client cancels the request, or leaves. */
  readonly canceled: AbortSignal;
  /** Answers to what an earlier round of this request asked for. */
  readonly responses: Readonly<Record<string, unknown>> | undefined;
  /** What that round said it was about; the client's to forge. */
  readonly state: string | undefined;
  readonly #server: ServerContext;
  /** The session's; without a session the broker cannot send requests to the client. */
  readonly #pings: ClientPings | undefined;
  #steps = 0;

  constructor(call: AuthenticatedRequest, era: Era, server: ServerContext, pings?: ClientPings) {
    this.call = call;
    this.broker = call.broker;
    this.principal = call.principal;
    this.era = era;
    this.#server = server;
    this.#pings = pings;
    this.canceled = server.mcpReq.signal;
    this.responses = server.mcpReq.inputResponses;
    const state = server.mcpReq.requestState<unknown>();
    this.state = typeof state === "string" ? state : undefined;
  }

  /** The client takes a task in the place of a result. */
  get takesTasks(): boolean {
    return this.era === "modern" && declaresTasks(this.#server.mcpReq.envelope);
  }

  /** The client shows forms to its user, and tries the request again with what was filled in. */
  get takesForms(): boolean {
    const elicitation =
      this.era === "modern" ? capabilitiesOf(this.#server.mcpReq.envelope).elicitation : undefined;
    // Declared without a mode it means forms.
    return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
  }

  get wantsProgress(): boolean {
    return this.#server.mcpReq._meta?.progressToken !== undefined;
  }

  /** Of this request, or of the HTTP request that it came with. */
  get traceparent(): string | undefined {
    return (
      traceparentOf(this.#server.mcpReq._meta?.[TRACEPARENT_META_KEY]) ??
      traceparentOf(this.call.header("traceparent"))
    );
  }

  async report(message: string): Promise<void> {
    const progressToken = this.#server.mcpReq._meta?.progressToken;
    if (progressToken === undefined || this.canceled.aborted) return;
    this.#steps += 1;
    const params = { progressToken, progress: this.#steps, message };
    // A client that is gone is noticed where it matters.
    await this.#server.mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
  }

  /** A wait counts against `quota`, and ends with the request, the token or the gateway. */
  held<T>(
    wait_seconds: number,
    work: (signal: AbortSignal) => Promise<T>,
    quota: Quota | null = "polls",
  ): Promise<T> {
    const held = ({ signal }: RequestScope) => work(AbortSignal.any([signal, this.canceled]));
    return this.call.withScope(wait_seconds, held, quota);
  }

  /** Whether the client answers pings at all. The session's first call finds out. */
  async answersPings(signal: AbortSignal): Promise<boolean> {
    return this.#pings?.answers(this.#ping, signal) ?? false;
  }

  /** Whether the client answers a ping now. */
  async isAlive(signal: AbortSignal): Promise<boolean> {
    return this.#pings?.isAlive(this.#ping, signal) ?? false;
  }

  /** Sends a ping on the stream of this request. */
  readonly #ping = (options: { readonly timeout: number; readonly signal: AbortSignal }) => {
    this.call.endTurn();
    return this.#server.mcpReq.send({ method: "ping" }, options);
  };

  /**
   * The idempotency key of work that this request asks for, when the caller gave none. The same request sent again
   * has the same one, as far as it can be known: a session and its request id name it, or an id that is unique by its
   * length. A counter without a session does not: every process that starts has the same ones.
   */
  keyFor(input: unknown): string {
    const { sessionId, mcpReq } = this.#server;
    const { id } = mcpReq;
    const isNamed = sessionId !== undefined || UNIQUE_ID.test(String(id));
    return `mcp:${isNamed ? bodyHash([sessionId ?? null, id, input]) : randomId(26)}`;
  }
}
