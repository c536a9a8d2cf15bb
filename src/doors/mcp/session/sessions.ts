/**
 * Sessions of 2025-11-25, in this gateway's memory. A client whose session is unknown (a gateway elsewhere, a restart, idle
 * for too long, a revoked token) gets 404 and initializes again, as that revision specifies. A session holds only the
 * handshake and whether the client answers pings, so no work is lost with it. A gateway that hands over to others on its
 * port passes its sessions on.
 */
import {
  isInitializeRequest,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { PassedSession } from "../../../gateways/messages.ts";
import type { Clock } from "../../../lifecycle/command.ts";
import { randomId } from "../../../redis/shards.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { LIMITS } from "../../../schema/limits.ts";
import type { AuthenticatedRequest } from "../../http/authenticated-request.ts";
import { OwnedBytes } from "../../http/owned-bytes.ts";
import { HANDOVER } from "../../http/shutdown-hooks.ts";
import { countValues } from "../bounds.ts";
import { errorResponse, withoutReservedCodes } from "../errors.ts";

const IDLE_CHECK_MS = 60_000;

interface Session {
  readonly id: string;
  readonly principal: string;
  readonly server: Server;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** Its `initialize` request as JSON, if it may be passed on. */
  readonly handshake: string | undefined;
  /** The memory of what the client said of itself, about. */
  readonly bytes: number;
  /** Ends the watch on its token; null until its client uses a session that was passed on. */
  release: (() => void) | null;
  lastUsedAt: number;
  /** Tool calls in progress. */
  activeCalls: number;
}

type TrackCall = <T>(work: () => Promise<T>) => Promise<T>;

export interface SessionsOptions {
  readonly clock: Clock;
  readonly stopping: AbortSignal;
  readonly createServer: (trackCall: TrackCall) => Server;
  /** Sessions for each principal. */
  readonly limit: number;
  /** Makes the id of a session from a random text. */
  readonly idOf: (random: string) => string;
  /** Whether sessions can be passed on to other gateways. */
  readonly keepsHandshakes: boolean;
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #bytes = new OwnedBytes();

  constructor(options: SessionsOptions) {
    this.#options = options;
    const timer = setInterval(() => this.#closeIdle(), IDLE_CHECK_MS).unref();
    options.stopping.addEventListener("abort", () => this.#stop(timer), { once: true });
  }

  /** The bytes that are counted for the handshakes of a principal. */
  bytes(principal: string): number {
    return this.#bytes.of(principal);
  }

  get size(): number {
    return this.#sessions.size;
  }

  async serve(request: AuthenticatedRequest, sdkRequest: Request, parsedBody: unknown): Promise<Response> {
    const id = sdkRequest.headers.get("mcp-session-id");
    if (id === null) {
      if (sdkRequest.method === "POST" && isInitializeRequest(parsedBody)) {
        return this.#open(request, sdkRequest, parsedBody);
      }
      const missing =
        "The Mcp-Session-Id header is missing. Send 'initialize' first, or use protocol version 2026-07-28.";
      return errorResponse(new ErrandError("invalid_request", missing), request.requestId);
    }
    const session = this.#find(id, request);
    if (!session) {
      const recovery =
        "Send 'initialize' without an Mcp-Session-Id for a new session. No work is lost with the old one.";
      const unknown = new ErrandError("not_found", "This gateway has no such session.", { recovery });
      return errorResponse(unknown, request.requestId);
    }
    session.lastUsedAt = this.#now();
    this.#watchToken(session, request);
    const response = await session.transport.handleRequest(sdkRequest, {
      ...(sdkRequest.method === "POST" && { parsedBody }),
    });
    return withoutReservedCodes(response, request.requestId);
  }

  /** For the gateway that takes them over. */
  passOn(): PassedSession[] {
    return [...this.#sessions.values()].map(({ id, principal, handshake = "null", lastUsedAt }) => ({
      ...{ id, principal, handshake: JSON.parse(handshake), lastUsedAt },
    }));
  }

  async takeOver(passed: readonly PassedSession[]): Promise<void> {
    for (const { id, principal, handshake, lastUsedAt } of passed) {
      const session = await this.#connect(id, principal, handshake);
      session.lastUsedAt = lastUsedAt;
      const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
      const again = new Request("http://errand.invalid/mcp", { method: "POST", headers });
      const response = await session.transport.handleRequest(again, { parsedBody: handshake });
      // The client got this answer from the gateway that opened the session.
      await response.body?.cancel();
      if (response.ok) this.#add(session);
    }
  }

  async #open(request: AuthenticatedRequest, sdkRequest: Request, parsedBody: unknown): Promise<Response> {
    this.#makeRoom(request, handshakeBytes(parsedBody, JSON.stringify(parsedBody)));
    const id = this.#options.idOf(randomId(32));
    const session = await this.#connect(id, request.principal.text, parsedBody);
    const response = await session.transport.handleRequest(sdkRequest, { parsedBody });
    if (response.ok) {
      this.#add(session);
      this.#watchToken(session, request);
      if (this.#isStopped()) this.#close(id);
    }
    return withoutReservedCodes(response, request.requestId);
  }

  async #connect(id: string, principal: string, handshake: unknown): Promise<Session> {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => this.#close(id),
    });
    const server = this.#options.createServer(async (work) => {
      session.activeCalls += 1;
      try {
        return await work();
      } finally {
        session.activeCalls -= 1;
        session.lastUsedAt = this.#now();
      }
    });
    const text = JSON.stringify(handshake);
    const session: Session = {
      id,
      principal,
      server,
      transport,
      handshake: this.#options.keepsHandshakes ? text : undefined,
      bytes: handshakeBytes(handshake, text),
      release: null,
      lastUsedAt: this.#now(),
      activeCalls: 0,
    };
    await server.connect(transport);
    return session;
  }

  /** The session ends with the token of its first request. */
  #watchToken(session: Session, request: AuthenticatedRequest): void {
    if (session.release !== null || !this.#sessions.has(session.id)) return;
    const token = request.watchToken(() => this.#close(session.id));
    session.release = () => token.release();
    if (token.hasEnded()) this.#close(session.id);
  }

  /** Another principal's session counts as unknown. */
  #find(id: string, request: AuthenticatedRequest): Session | undefined {
    const session = this.#sessions.get(id);
    if (!session || session.principal !== request.principal.text) return undefined;
    if (!this.#isIdle(session)) return session;
    this.#close(id);
    return undefined;
  }

  #add(session: Session): void {
    this.#sessions.set(session.id, session);
    this.#bytes.add(session.principal, session.bytes);
  }

  /** At a limit, closes the principal's sessions that were idle for longest: clients seldom close their own. */
  #makeRoom({ principal: { text: principal } }: AuthenticatedRequest, bytes: number): void {
    const { limit } = this.#options;
    const mostBytes = LIMITS.sessions_bytes.value;
    const own = [...this.#sessions.values()].filter((session) => session.principal === principal);
    const idle = own
      .filter(({ activeCalls }) => activeCalls === 0)
      .sort((a, b) => b.lastUsedAt - a.lastUsedAt);
    for (let left = own.length; ; left -= 1) {
      const isFull = left >= limit;
      if (!isFull && this.#bytes.of(principal) + bytes <= mostBytes) return;
      const oldest = idle.pop();
      if (oldest) {
        this.#close(oldest.id);
        continue;
      }
      const [quota, most] = isFull ? ["sessions", limit] : ["sessions_bytes", mostBytes];
      throw new ErrandError(
        "quota_exceeded",
        `${principal} has too many sessions with calls in progress at this gateway; the limit is ${most}${isFull ? "" : " bytes"}.`,
        { retry_after_seconds: 5, details: { quota, limit: most } },
      );
    }
  }

  #now(): number {
    return Date.now() + this.#options.clock.offset_ms;
  }

  #isIdle({ activeCalls, lastUsedAt }: Session): boolean {
    return activeCalls === 0 && this.#now() - lastUsedAt >= LIMITS.session_seconds.value * 1000;
  }

  #closeIdle(): void {
    for (const session of this.#sessions.values()) if (this.#isIdle(session)) this.#close(session.id);
  }

  #close(id: string): void {
    const session = this.#sessions.get(id);
    if (!session) return;
    this.#sessions.delete(id);
    this.#bytes.add(session.principal, -session.bytes);
    session.release?.();
    // Closing the server would leave calls in progress without an answer; they end by themselves.
    if (session.activeCalls === 0) void session.server.close().catch(() => {});
  }

  #stop(timer: NodeJS.Timeout): void {
    clearInterval(timer);
    // After a hand-over its calls end by themselves, and others still send requests here.
    if (this.#isStopped()) for (const id of [...this.#sessions.keys()]) this.#close(id);
  }

  #isStopped(): boolean {
    const { aborted, reason } = this.#options.stopping;
    return aborted && reason !== HANDOVER;
  }
}

/** What V8 needs for a member or an element. */
const BYTES_PER_VALUE = 100;

/** The memory of a handshake: its text, and what the SDK keeps of it as objects. */
const handshakeBytes = (handshake: unknown, text: string): number =>
  2 * text.length + BYTES_PER_VALUE * countValues(handshake, LIMITS.mcp_message_values.value);
