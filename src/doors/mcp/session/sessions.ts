/**
 * Sessions of 2025-11-25, in this gateway's memory. A client whose session is unknown (another gateway, a restart, idle
 * for too long, a revoked token) gets 404 and initializes again, as that revision specifies. A session holds only the
 * handshake and whether the client answers pings, so no work is lost with it.
 */
import {
  isInitializeRequest,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { Clock } from "../../../lifecycle/command.ts";
import { randomId } from "../../../redis/shards.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { LIMITS } from "../../../schema/limits.ts";
import type { AuthenticatedRequest } from "../../http/authenticated-request.ts";
import { errorResponse, withoutReservedCodes } from "../errors.ts";

const IDLE_CHECK_MS = 60_000;

interface Session {
  readonly id: string;
  readonly principal: string;
  readonly server: Server;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly release: () => void;
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
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sessions = new Map<string, Session>();

  constructor(options: SessionsOptions) {
    this.#options = options;
    const timer = setInterval(() => this.#closeIdle(), IDLE_CHECK_MS).unref();
    options.stopping.addEventListener("abort", () => this.#stop(timer), { once: true });
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
    const response = await session.transport.handleRequest(sdkRequest, {
      ...(sdkRequest.method === "POST" && { parsedBody }),
    });
    return withoutReservedCodes(response, request.requestId);
  }

  async #open(request: AuthenticatedRequest, sdkRequest: Request, parsedBody: unknown): Promise<Response> {
    requireSmall(parsedBody);
    this.#evictOldest(request);
    const id = `mcp_${randomId(32)}`;
    const token = request.watchToken(() => this.#close(id));
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
    const session: Session = {
      id,
      principal: request.principal.text,
      server,
      transport,
      release: () => token.release(),
      lastUsedAt: this.#now(),
      activeCalls: 0,
    };
    await server.connect(transport);
    const response = await transport.handleRequest(sdkRequest, { parsedBody });
    if (response.ok) {
      this.#sessions.set(id, session);
      if (token.hasEnded() || this.#options.stopping.aborted) this.#close(id);
    } else {
      token.release();
    }
    return withoutReservedCodes(response, request.requestId);
  }

  /** Another principal's session counts as unknown. */
  #find(id: string, request: AuthenticatedRequest): Session | undefined {
    const session = this.#sessions.get(id);
    if (!session || session.principal !== request.principal.text) return undefined;
    if (!this.#isIdle(session)) return session;
    this.#close(id);
    return undefined;
  }

  /** At the limit, closes the principal's session that was idle for longest: clients seldom close their own. */
  #evictOldest(request: AuthenticatedRequest): void {
    const own = [...this.#sessions.values()].filter(({ principal }) => principal === request.principal.text);
    const { limit } = this.#options;
    if (own.length < limit) return;
    const [oldest] = own
      .filter(({ activeCalls }) => activeCalls === 0)
      .sort((a, b) => a.lastUsedAt - b.lastUsedAt);
    if (!oldest) {
      throw new ErrandError(
        "quota_exceeded",
        `${request.principal.text} has too many sessions with calls in progress at this gateway; the limit is ${limit}.`,
        { retry_after_seconds: 5, details: { quota: "sessions", limit } },
      );
    }
    this.#close(oldest.id);
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
    session.release();
    // Closing the server would leave calls in progress without an answer; they end by themselves.
    if (session.activeCalls === 0) void session.server.close().catch(() => {});
  }

  #stop(timer: NodeJS.Timeout): void {
    clearInterval(timer);
    for (const id of [...this.#sessions.keys()]) this.#close(id);
  }
}

/** The session keeps what the client says of itself. */
function requireSmall(handshake: unknown): void {
  const most = LIMITS.session_bytes.value;
  if (Buffer.byteLength(JSON.stringify(handshake)) <= most) return;
  throw new ErrandError("payload_too_large", `The initialize request exceeds ${most} bytes.`);
}
