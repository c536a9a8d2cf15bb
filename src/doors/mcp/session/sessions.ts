/**
 * Sessions of 2025-11-25, in this gateway's memory: a client that finds its own gone (another gateway, a restart, too
 * long idle, its token revoked) gets 404 and initializes again, as that revision has it. Limit: a session
 * holds only the handshake and whether the client answers pings, so no work is lost with it.
 */
import {
  isInitializeRequest,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { Clock } from "../../../lifecycle/writer.ts";
import { randomId } from "../../../redis/shards.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { LIMITS } from "../../../schema/limits.ts";
import type { AuthenticatedRequest } from "../../http/authenticated-request.ts";
import { errorResponse, withoutOldCodes } from "../errors.ts";

const LOOK_MS = 60_000;

interface Session {
  readonly id: string;
  readonly principal: string;
  readonly server: Server;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly release: () => void;
  usedAt: number;
  /** Calls of tools that are not answered yet. */
  busy: number;
}

type Around = <T>(work: () => Promise<T>) => Promise<T>;

export interface SessionsOptions {
  readonly clock: Clock;
  readonly stopping: AbortSignal;
  readonly make: (around: Around) => Server;
  /** Sessions of a principal. */
  readonly most: number;
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sessions = new Map<string, Session>();

  constructor(options: SessionsOptions) {
    this.#options = options;
    const timer = setInterval(() => this.#forgetIdle(), LOOK_MS).unref();
    options.stopping.addEventListener("abort", () => this.#stop(timer), { once: true });
  }

  get size(): number {
    return this.#sessions.size;
  }

  async serve(call: AuthenticatedRequest, request: Request, parsedBody: unknown): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    if (id === null) {
      if (request.method === "POST" && isInitializeRequest(parsedBody)) {
        return this.#open(call, request, parsedBody);
      }
      const missing = "There is no Mcp-Session-Id: send 'initialize' first, or speak 2026-07-28.";
      return errorResponse(new ErrandError("invalid_request", missing), call.requestId);
    }
    const session = this.#find(id, call);
    if (!session) {
      const recovery =
        "Send 'initialize' without an Mcp-Session-Id for a new session; no work is lost with the old.";
      const gone = new ErrandError("not_found", "There is no such session at this gateway.", { recovery });
      return errorResponse(gone, call.requestId);
    }
    session.usedAt = this.#now();
    const answer = await session.transport.handleRequest(request, {
      ...(request.method === "POST" && { parsedBody }),
    });
    return withoutOldCodes(answer, call.requestId);
  }

  async #open(call: AuthenticatedRequest, request: Request, parsedBody: unknown): Promise<Response> {
    this.#makeRoom(call);
    const id = `mcp_${randomId(32)}`;
    const token = call.watchToken(() => this.#close(id));
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => this.#close(id),
    });
    const server = this.#options.make(async (work) => {
      session.busy += 1;
      try {
        return await work();
      } finally {
        session.busy -= 1;
        session.usedAt = this.#now();
      }
    });
    const session: Session = {
      id,
      principal: call.principal.text,
      server,
      transport,
      release: () => token.release(),
      usedAt: this.#now(),
      busy: 0,
    };
    await server.connect(transport);
    const answer = await transport.handleRequest(request, { parsedBody });
    if (answer.ok) {
      this.#sessions.set(id, session);
      if (token.hasEnded() || this.#options.stopping.aborted) this.#close(id);
    } else {
      token.release();
    }
    return withoutOldCodes(answer, call.requestId);
  }

  /** Another principal's session is as unknown as none. */
  #find(id: string, call: AuthenticatedRequest): Session | undefined {
    const session = this.#sessions.get(id);
    if (!session || session.principal !== call.principal.text) return undefined;
    if (!this.#isIdle(session)) return session;
    this.#close(id);
    return undefined;
  }

  /** Clients that went away without a word leave sessions behind: the one that was idle for longest goes. */
  #makeRoom(call: AuthenticatedRequest): void {
    const own = [...this.#sessions.values()].filter(({ principal }) => principal === call.principal.text);
    const { most } = this.#options;
    if (own.length < most) return;
    const [oldest] = own.filter(({ busy }) => busy === 0).sort((a, b) => a.usedAt - b.usedAt);
    if (!oldest) {
      throw new ErrandError(
        "quota_exceeded",
        `${call.principal.text} has ${most} sessions at work at this gateway; that is the limit.`,
        { retry_after_seconds: 5, details: { quota: "sessions", limit: most } },
      );
    }
    this.#close(oldest.id);
  }

  #now(): number {
    return Date.now() + this.#options.clock.offset_ms;
  }

  #isIdle({ busy, usedAt }: Session): boolean {
    return busy === 0 && this.#now() - usedAt >= LIMITS.session_seconds.value * 1000;
  }

  #forgetIdle(): void {
    for (const session of this.#sessions.values()) if (this.#isIdle(session)) this.#close(session.id);
  }

  #close(id: string): void {
    const session = this.#sessions.get(id);
    if (!session) return;
    this.#sessions.delete(id);
    session.release();
    // Closing it would leave what is under way without an answer; that ends by itself, and the session with it.
    if (session.busy === 0) void session.server.close().catch(() => {});
  }

  #stop(timer: NodeJS.Timeout): void {
    clearInterval(timer);
    for (const id of [...this.#sessions.keys()]) this.#close(id);
  }
}
