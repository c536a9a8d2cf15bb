/**
 * What every request passes on its way in and every answer on its way out, whatever serves it: the guard of origins, who
 * calls, the body, the common headers. Limit: routes and forms are the doors' business.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Identity } from "../../engine/access/tokens.ts";
import type { Broker } from "../../engine/broker.ts";
import { randomId } from "../../redis/shards.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { Answer } from "./answer.ts";
import { parseBody, readBody } from "./body.ts";
import { Call, Ends } from "./call.ts";
import { InProgress } from "./in-progress.ts";
import { Inflow } from "./inflow.ts";
import { corsHeaders, originGuard } from "./origin.ts";
import { CHUNK_BYTES, Outflow } from "./outflow.ts";
import { toErrandError } from "./problem.ts";
import type { RawInput, Route } from "./route.ts";

/** A request as it came. */
export interface Inbound {
  readonly requestId: string;
  readonly method: string;
  /** A header, by its name in small letters. */
  header(name: string): string | undefined;
  readonly incoming: IncomingMessage | undefined;
  readonly outgoing: ServerResponse | undefined;
}

export interface GateOptions {
  readonly broker: Broker;
  readonly host: string;
  readonly maxBodyBytes: number;
  readonly allowedOrigins: readonly string[];
  /** Aborts when the gateway stops: parked polls are answered, streams end, new requests are refused. */
  readonly stopping: AbortSignal;
}

export interface Entered {
  readonly call: Call;
  readonly bytes: Uint8Array;
}

export interface Admitted {
  readonly call: Call;
  readonly raw: RawInput;
}

/** A body that was there so soon leaves no time for a revocation that counts. */
const AT_ONCE_MS = 100;

export class Gate {
  /** Throws for an origin or a host that is not let in; the origin where it is another site's. */
  readonly guard: (origin: string | undefined, host: string | undefined) => string | undefined;
  readonly inflow = new Inflow();
  readonly inProgress: InProgress;
  readonly outflow: Outflow;
  readonly #options: GateOptions;
  readonly #ends = new Ends();

  constructor(options: GateOptions) {
    this.#options = options;
    const { clock, log, metrics } = options.broker;
    const now = () => performance.now() + clock.offset_ms;
    this.inProgress = new InProgress(now);
    this.outflow = new Outflow({
      now,
      onCut: (owner, bytes) => {
        metrics.cutAnswers.inc();
        log.warn({ owner, bytes }, "an unread answer was cut: this principal has left too much unread");
      },
    });
    this.guard = originGuard(options.host, options.allowedOrigins);
    options.stopping.addEventListener("abort", () => this.#ends.endAll());
  }

  newRequestId(): string {
    return `req_${randomId(16)}`;
  }

  /** Lets a caller in, and reads what it brings. */
  async enter(inbound: Inbound): Promise<Entered> {
    const { broker } = this.#options;
    const { incoming, method } = inbound;
    this.#requireRunning();
    const token = bearerOf(inbound.header("authorization"));
    const first = await broker.tokens.identify(token);
    const askedAt = performance.now();
    const hasBody = method === "POST" || method === "PUT" || method === "PATCH";
    const bytes = hasBody && incoming ? await this.#read(incoming, inbound, first) : new Uint8Array();
    // Unread, it would keep the end of the connection from being noticed.
    if (!hasBody) incoming?.resume();
    // A body may take its time, and the gateway may be stopped or the token revoked meanwhile.
    this.#requireRunning();
    const isLate = performance.now() - askedAt > AT_ONCE_MS;
    const identity = isLate ? await broker.tokens.identify(token) : first;
    return { call: new Call(broker, inbound, identity, this.#ends, this.outflow), bytes };
  }

  /** A large body counts for its principal until the request is answered, because one that waits may still hold it. */
  #read(incoming: IncomingMessage, { outgoing }: Inbound, { principal }: Identity): Promise<Uint8Array> {
    const body = this.inflow.body(principal);
    let isWatched = false;
    return readBody(incoming, this.#options.maxBodyBytes, (bytes) => {
      body.grow(bytes);
      if (isWatched || bytes <= CHUNK_BYTES) return;
      isWatched = true;
      if (!outgoing || outgoing.destroyed) return body.release();
      const { socket } = incoming;
      const over = () => {
        // The connection serves more requests, and must not keep this one's listener.
        outgoing.off("close", over);
        socket.off("close", over);
        body.release();
      };
      outgoing.once("close", over);
      socket.once("close", over);
    });
  }

  /** For a route of the table: lets a caller in, and makes of the request what the route takes. */
  async admit(
    inbound: Inbound,
    params: unknown,
    queries: Readonly<Record<string, readonly string[]>>,
    { notes }: Pick<Route, "notes">,
  ): Promise<Admitted> {
    const { call, bytes } = await this.enter(inbound);
    const body = parseBody(bytes, inbound.header("content-type"), notes);
    return { call, raw: { params, query: single(queries), body } };
  }

  /**
   * Runs a request when its principal's turn comes. The turn ends when the request waits, streams or is done. (Not async:
   * a parked poll would keep the frame.)
   */
  run<T>(call: Call, work: () => Promise<T>): Promise<T> {
    const { text } = call.principal;
    const turn = this.inProgress.begin(text);
    const start = () => {
      call.onTurnEnd = () => this.inProgress.end(text);
      return work();
    };
    return turn === null ? start() : turn.then(start);
  }

  /** Like {@link run}, and ends the turn when the work is done. */
  async turn<T>(call: Call, work: () => Promise<T>): Promise<T> {
    try {
      return await this.run(call, work);
    } finally {
      call.endTurn();
    }
  }

  /** What every answer says beside what it is about. */
  headers(requestId: string, foreign: string | undefined): Record<string, string> {
    const { allowedOrigins, stopping } = this.#options;
    return {
      "x-request-id": requestId,
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
      // Some origins get more to read than others; a cache must not mix them up.
      ...(allowedOrigins.length > 0 && { vary: "Origin" }),
      ...(stopping.aborted && { connection: "close" }),
      ...(foreign !== undefined && corsHeaders(foreign)),
    };
  }

  /** Writes an answer. A large one counts as unread by the caller; without a caller, by the address. */
  write(answer: Answer, inbound: Inbound, foreign: string | undefined, call?: Call): void {
    const { outgoing, requestId } = inbound;
    if (!outgoing) return;
    const owner = () => call?.principal.text ?? `address ${outgoing.req.socket.remoteAddress}`;
    answer.writeTo(outgoing, this.headers(requestId, foreign), this.outflow, owner);
  }

  refusal(error: unknown, requestId: string, method: string): ErrandError {
    return toErrandError(error, this.#options.broker.log, requestId, method);
  }

  count(method: string, route: string, status: number): void {
    this.#options.broker.metrics.requests.inc({ method, route, status: String(status) });
  }

  #requireRunning(): void {
    if (!this.#options.stopping.aborted) return;
    throw new ErrandError("shutting_down", "This gateway is shutting down.", { retry_after_seconds: 1 });
  }
}

/** Each parameter once: whoever gave it twice meant something that no schema here can say. */
function single(query: Readonly<Record<string, readonly string[]>>): Record<string, string | undefined> {
  const repeated = Object.keys(query).filter((name) => (query[name]?.length ?? 0) > 1);
  if (repeated.length > 0) {
    throw new ErrandError("invalid_request", `${repeated[0]}: stands in the query more than once`, {
      details: { issues: repeated.map((path) => ({ path, reason: "stands in the query more than once" })) },
    });
  }
  return Object.fromEntries(Object.entries(query).map(([name, [value]]) => [name, value]));
}

export function bearerOf(header: string | undefined): string {
  const token = /^Bearer +(\S+)$/i.exec(header ?? "")?.[1];
  if (token === undefined) throw new ErrandError("unauthenticated", "There is no bearer token.");
  return token;
}
