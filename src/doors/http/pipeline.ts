/**
 * The steps of every request: check the origin, authenticate the caller, read the body, wait for a turn, write the response
 * with the common headers. Limit: it knows no routes and no formats.
 */
import type { Identity } from "../../engine/access/revocations.ts";
import type { Broker } from "../../engine/broker.ts";
import { randomId } from "../../redis/shards.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { AuthenticatedRequest, noToken } from "./authenticated-request.ts";
import { parseBody, readBody, requirePlain } from "./body.ts";
import { ByteResponse } from "./byte-response.ts";
import { ConcurrencyLimiter, weightOf } from "./concurrency-limiter.ts";
import { Connection, hasSeveralHosts, hasTooManyHeaders } from "./connection.ts";
import { EventStream } from "./event-stream.ts";
import { addressOf, type IncomingRequest } from "./incoming-request.ts";
import { Inflow, type InflowBody, NO_BODY, UNCOUNTED_BYTES } from "./inflow.ts";
import { LargeBodyQueue } from "./large-body-queue.ts";
import { corsHeaders, originGuard } from "./origin.ts";
import { Outflow } from "./outflow.ts";
import { problemText, shuttingDown, toErrandError } from "./problem.ts";
import type { Notes, RawInput, Route, RouteResponse } from "./route.ts";
import { HANDOVER, ShutdownHooks } from "./shutdown-hooks.ts";
import { StreamTicker } from "./stream-ticker.ts";
import type { TextResponse } from "./text-response.ts";

export interface PipelineOptions {
  readonly broker: Broker;
  readonly host: string;
  readonly maxBodyBytes: number;
  readonly allowedOrigins: readonly string[];
  /**
   * Aborts when the gateway stops: parked polls are answered, streams end, new requests are refused, unless the reason is
   * {@link HANDOVER}.
   */
  readonly stopping: AbortSignal;
}

/** After a body that arrived in less time, the token is not checked again. */
const PROMPT_BODY_MS = 100;

/** The handler reads the body. */
const UNREAD = { bytes: new Uint8Array(), body: NO_BODY };

export class Pipeline {
  readonly inflow = new Inflow();
  readonly limiter: ConcurrencyLimiter;
  readonly outflow: Outflow;
  readonly #options: PipelineOptions;
  readonly #checkOrigin: ReturnType<typeof originGuard>;
  readonly #largeBodies = new LargeBodyQueue();
  readonly #hooks = new ShutdownHooks();
  readonly #ticker = new StreamTicker();

  constructor(options: PipelineOptions) {
    this.#options = options;
    const { clock, log, metrics } = options.broker;
    const now = () => performance.now() + clock.offset_ms;
    this.limiter = new ConcurrencyLimiter(now);
    this.outflow = new Outflow({
      now,
      onCut: (owner, bytes) => {
        metrics.cutAnswers.inc();
        log.warn({ owner, bytes }, "closed a connection: its principal exceeded the limit of unread bytes");
      },
    });
    this.#checkOrigin = originGuard(options.host, options.allowedOrigins);
    options.stopping.addEventListener("abort", () => {
      this.#hooks.run({ handover: options.stopping.reason === HANDOVER });
    });
  }

  newRequestId(): string {
    return `req_${randomId(16)}`;
  }

  /**
   * Throws for headers that no request may have, and `forbidden` for an origin or host that is not allowed; returns the
   * origin if it is another site's.
   */
  checkHead(request: IncomingRequest, anyHost = false): string | undefined {
    if (hasTooManyHeaders(request.incoming)) throw tooManyHeaders();
    if (hasSeveralHosts(request.incoming)) throw severalHosts();
    return this.#checkOrigin(request.header("origin"), request.header("host"), anyHost);
  }

  /** Checks the token and reads the body. A request without an Authorization header passes only if it may be anonymous. */
  async authenticate(
    incoming: IncomingRequest,
    { allowsAnonymous, receivesBytes }: Notes = {},
  ): Promise<{ readonly request: AuthenticatedRequest; readonly bytes: Uint8Array }> {
    const { broker } = this.#options;
    this.#requireRunning();
    const authorization = incoming.header("authorization");
    const isAnonymous = allowsAnonymous === true && authorization === undefined;
    const identify = async () => (isAnonymous ? null : broker.tokens.identify(bearerOf(authorization)));
    const { socket } = incoming.incoming;
    const connection = Connection.of(socket);
    const first = await identify().catch((error: unknown) => {
      const isRefused = error instanceof ErrandError && error.code === "unauthenticated";
      if (isRefused && connection?.rejectToken() === false) socket.destroy();
      throw error;
    });
    if (first) connection?.identify(first.principal);
    const askedAt = performance.now();
    const { bytes, body } = receivesBytes ? UNREAD : await this.#read(incoming, first);
    // While a body arrives the gateway may stop, or the token may be revoked.
    this.#requireRunning();
    const isLate = performance.now() - askedAt > PROMPT_BODY_MS;
    const identity = isLate ? await identify() : first;
    const request = new AuthenticatedRequest(broker, incoming, identity, this.#hooks, this.outflow);
    request.bodyBytes = bytes.length;
    request.body = body;
    return { request, bytes };
  }

  /** A large body counts for its principal until the response is sent. */
  async #read(
    request: IncomingRequest,
    identity: Identity | null,
  ): Promise<{ readonly bytes: Uint8Array; readonly body: Pick<InflowBody, "keep"> }> {
    const { method, incoming, outgoing } = request;
    const hasBody = method === "POST" || method === "PUT" || method === "PATCH";
    // An unread body would hide the end of the connection.
    if (!hasBody) {
      incoming.resume();
      return { bytes: new Uint8Array(), body: NO_BODY };
    }
    const { "content-length": length = "0", "transfer-encoding": transfer } = incoming.headers;
    if (length !== "0" || transfer !== undefined) requirePlain(request.header("content-encoding"));
    const body = this.inflow.body(identity?.principal ?? addressOf(request));
    const maxBytes = identity ? this.#options.maxBodyBytes : UNCOUNTED_BYTES;
    let isWatched = false;
    const read = await readBody(incoming, maxBytes, (bytes) => {
      body.grow(bytes);
      if (isWatched || bytes <= UNCOUNTED_BYTES) return;
      isWatched = true;
      if (outgoing.destroyed) return body.release();
      const { socket } = incoming;
      const over = () => {
        // The connection serves more requests; their listeners must not pile up on the socket.
        outgoing.off("close", over);
        socket.off("close", over);
        body.release();
      };
      outgoing.once("close", over);
      socket.once("close", over);
    });
    return { bytes: read, body };
  }

  /**
   * For a route of the table: authenticates the request. Call `input` in its turn: a parsed body may take twenty times the
   * memory, and any number of requests may wait for their turns.
   */
  async admit(
    incoming: IncomingRequest,
    params: unknown,
    queries: Readonly<Record<string, readonly string[]>>,
    { notes }: Pick<Route, "notes">,
  ): Promise<{ readonly request: AuthenticatedRequest; readonly input: () => RawInput }> {
    const { request, bytes } = await this.authenticate(incoming, notes);
    const input = () => ({
      params,
      query: single(queries),
      body: parseBody(bytes, incoming.header("content-type"), notes),
    });
    return { request, input };
  }

  /**
   * Runs a request when its principal's turn comes. The turn ends when the request waits, streams or is answered. (Not
   * async: a parked poll would retain the frame.)
   */
  inTurn<T>(request: AuthenticatedRequest, work: () => Promise<T>): Promise<T> {
    const { owner } = request;
    const weight = weightOf(request.bodyBytes);
    const turn = this.limiter.begin(owner, weight);
    const letGo = request.body.keep();
    const begin = () => {
      letGo();
      return work();
    };
    const refuse = (error: unknown) => {
      letGo();
      throw error;
    };
    const start = () => {
      request.onTurnEnd = () => this.limiter.end(owner, weight);
      const largeTurn = weight > 1 ? this.#largeBodies.add(owner) : null;
      return largeTurn === null ? begin() : largeTurn.then(begin);
    };
    return turn === null ? start() : turn.then(start, refuse);
  }

  /** Like {@link inTurn}, and ends the turn when the work is done. */
  async inWholeTurn<T>(request: AuthenticatedRequest, work: () => Promise<T>): Promise<T> {
    try {
      return await this.inTurn(request, work);
    } finally {
      request.endTurn();
    }
  }

  /** Headers of every response. */
  headers(requestId: string, foreign: string | undefined): Record<string, string> {
    const { allowedOrigins, stopping, broker } = this.#options;
    return {
      "errand-broker": broker.id,
      "x-request-id": requestId,
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
      // Some origins may read more headers than others; a cache must not mix them up.
      ...(allowedOrigins.length > 0 && { vary: "Origin" }),
      ...(stopping.aborted && { connection: "close" }),
      ...(foreign !== undefined && corsHeaders(foreign)),
    };
  }

  /** Writes a response, or begins to. A large one counts as unread by its caller, or by the address if there is no caller. */
  write(
    response: RouteResponse,
    incoming: IncomingRequest,
    foreign: string | undefined,
    request?: AuthenticatedRequest,
  ): void {
    const { outgoing, requestId, method } = incoming;
    const headers = this.headers(requestId, foreign);
    if (response instanceof EventStream && method === "HEAD") {
      response.discard();
      outgoing.writeHead(response.status, { ...headers, ...response.headers }).end();
      return;
    }
    if (response instanceof EventStream) {
      response.writeTo(outgoing, headers, this.#ticker);
      return;
    }
    if (response instanceof ByteResponse) {
      response.writeTo(outgoing, headers, method === "HEAD");
      return;
    }
    const owner = () => request?.owner ?? addressOf(incoming);
    response.writeTo(outgoing, headers, this.outflow, owner);
  }

  /** Writes a web response that is a stream; what its caller has not read is counted. */
  pipe(
    response: Response,
    body: ReadableStream<Uint8Array>,
    incoming: IncomingRequest,
    foreign: string | undefined,
    request?: AuthenticatedRequest,
  ): void {
    const { outgoing, requestId } = incoming;
    const headers = { ...this.headers(requestId, foreign), ...Object.fromEntries(response.headers) };
    outgoing.writeHead(response.status, headers);
    // The first message may take long.
    outgoing.flushHeaders();
    void this.outflow.pipe(outgoing, body, request?.owner ?? addressOf(incoming));
  }

  toError(error: unknown, requestId: string, method: string): ErrandError {
    return toErrandError(error, this.#options.broker.log, requestId, method);
  }

  problem(error: unknown, requestId: string, method: string): TextResponse {
    return problemText(this.toError(error, requestId, method), requestId, this.#options.broker.id);
  }

  count(method: string, route: string, status: number): void {
    this.#options.broker.metrics.requests.inc({ method, route, status: String(status) });
  }

  #requireRunning(): void {
    const { aborted, reason } = this.#options.stopping;
    if (!aborted || reason === HANDOVER) return;
    throw shuttingDown();
  }
}

/** Throws for a query whose escapes are not UTF-8: parsers would keep or replace them, each in its own way. */
export function requireUtf8Query(query: string): void {
  for (const [escapes] of query.matchAll(/(?:%[0-9a-f]{2})+/gi)) {
    try {
      decodeURIComponent(escapes);
    } catch {
      throw new ErrandError("invalid_utf8", "The query is not valid UTF-8.", {
        recovery: "Encode the values of the query as UTF-8, then percent-encode them.",
      });
    }
  }
}

/** Throws for a repeated parameter: no schema accepts a list in that form. */
function single(query: Readonly<Record<string, readonly string[]>>): Record<string, string | undefined> {
  const repeated = Object.keys(query).filter((name) => (query[name]?.length ?? 0) > 1);
  if (repeated.length > 0) {
    throw new ErrandError("invalid_request", `${repeated[0]}: appears more than once in the query`, {
      details: { issues: repeated.map((path) => ({ path, reason: "appears more than once in the query" })) },
    });
  }
  return Object.fromEntries(Object.entries(query).map(([name, [value]]) => [name, value]));
}

export function bearerOf(header: string | undefined): string {
  const token = /^Bearer +(\S+)$/i.exec(header ?? "")?.[1];
  if (token === undefined) throw noToken();
  return token;
}

function tooManyHeaders(): ErrandError {
  const most = LIMITS.headers.value;
  return new ErrandError("invalid_request", `The request has more than ${most} headers.`, {
    details: { limit: "headers", issues: [{ path: "", reason: `at most ${most} headers` }] },
    recovery: `Send at most ${most} headers.`,
  });
}

function severalHosts(): ErrandError {
  return new ErrandError("invalid_request", "The request has more than one Host header.", {
    details: { issues: [{ path: "Host", reason: "at most one" }] },
    recovery: "Send one Host header.",
  });
}
