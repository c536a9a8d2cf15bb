/**
 * A request with its authenticated caller, as handlers receive it. Limit: where a route allows it, the caller may be
 * anonymous; everything that needs a principal then throws `unauthenticated`.
 */
import { type Principal, toPrincipal } from "../../engine/access/access.ts";
import type { Quota } from "../../engine/access/quotas.ts";
import type { Identity, TokenWatch } from "../../engine/access/revocations.ts";
import type { Broker } from "../../engine/broker.ts";
import type { ReplayPace } from "../../events/replay-pace.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { requirePlain } from "./body.ts";
import { addressOf, type IncomingRequest } from "./incoming-request.ts";
import { type InflowBody, NO_BODY } from "./inflow.ts";
import type { Outflow } from "./outflow.ts";
import { rawBody } from "./raw-body.ts";
import { RequestScope } from "./request-scope.ts";
import type { ShutdownHooks } from "./shutdown-hooks.ts";

export class AuthenticatedRequest {
  readonly broker: Broker;
  readonly #request: IncomingRequest;
  /** Null for an anonymous caller. */
  readonly #identity: Identity | null;
  readonly #hooks: ShutdownHooks;
  readonly #outflow: Outflow;
  #principal: Principal | undefined;

  constructor(
    broker: Broker,
    request: IncomingRequest,
    identity: Identity | null,
    hooks: ShutdownHooks,
    outflow: Outflow,
  ) {
    this.broker = broker;
    this.#request = request;
    this.#identity = identity;
    this.#hooks = hooks;
    this.#outflow = outflow;
  }

  get requestId(): string {
    return this.#request.requestId;
  }

  /** The size of its body; set once the body has arrived. */
  bodyBytes = 0;

  /** Its body, while it waits for its turn. */
  body: Pick<InflowBody, "keep"> = NO_BODY;

  /** Called once, when the request no longer counts as in progress: its response is ready, or it starts to wait. */
  onTurnEnd: (() => void) | null = null;

  /** The same request with a turn of its own, for one of the messages in its body. */
  part(): AuthenticatedRequest {
    return new AuthenticatedRequest(this.broker, this.#request, this.#identity, this.#hooks, this.#outflow);
  }

  endTurn(): void {
    const end = this.onTurnEnd;
    this.onTurnEnd = null;
    end?.();
  }

  /** Returns a header by its lower-case name. */
  header(name: string): string | undefined {
    return this.#request.header(name);
  }

  /** Quoted, as the IETF draft has it, or bare: the same key. */
  get idempotencyKey(): string | undefined {
    const given = this.header("idempotency-key");
    const [, quoted] = /^"((?:[^"\\]|\\["\\])*)"$/.exec(given ?? "") ?? [];
    return quoted?.replaceAll(/\\(.)/g, "$1") ?? given;
  }

  get isAnonymous(): boolean {
    return this.#identity === null;
  }

  /** The token or session of the caller. */
  get identity(): Identity {
    if (this.#identity === null) throw noToken();
    return this.#identity;
  }

  get principal(): Principal {
    this.#principal ??= toPrincipal(this.identity.principal, this.identity);
    return this.#principal;
  }

  /** The owner of the limits that the request counts against: the principal, or the address of an anonymous caller. */
  get owner(): string {
    return this.#identity?.principal ?? addressOf(this.#request);
  }

  /** For work that waits or streams; the caller releases the scope. Throws `quota_exceeded` when the quota is used up. */
  openScope(quota: Quota | null, waits = true): RequestScope {
    return new RequestScope(this, quota, this.#request.outgoing, this.#hooks, waits);
  }

  /** For state that outlives the request: calls `onEnd` when the token ends. The caller releases the watch. */
  watchToken(onEnd: () => void): TokenWatch {
    return this.broker.tokens.watch(this.identity, onEnd);
  }

  /**
   * Runs work that may wait, in a {@link RequestScope}; throws `unauthenticated` if the token ended meanwhile. The quota
   * is checked first, so anything that a refused request must not do belongs inside `work`. (Not async: a parked poll
   * would retain the frame.)
   */
  withScope<T>(
    wait_seconds: number,
    work: (scope: RequestScope) => Promise<T>,
    quota: Quota | null = "polls",
  ): Promise<T> {
    const scope = this.openScope(wait_seconds > 0 ? quota : null, wait_seconds > 0);
    if (wait_seconds > 0) this.endTurn();
    const failed = (error: unknown): never => {
      scope.release();
      throw error;
    };
    try {
      return work(scope).then((result) => {
        scope.release();
        scope.throwIfRevoked();
        return result;
      }, failed);
    } catch (error) {
      return failed(error);
    }
  }

  /** Runs work that reads the body as it arrives. Throws `unauthenticated` if the token ended meanwhile. */
  async withBody<T>(work: (bytes: AsyncIterable<Uint8Array>) => Promise<T>): Promise<T> {
    const { incoming } = this.#request;
    requirePlain(this.header("content-encoding"));
    const scope = this.openScope("transfers");
    try {
      const result = await work(rawBody(incoming, scope));
      scope.throwIfRevoked();
      return result;
    } catch (error) {
      scope.throwIfRevoked();
      throw error;
    } finally {
      scope.release();
    }
  }

  /** Whether the connection closed before the response was written. */
  isGone(): boolean {
    const { outgoing } = this.#request;
    return (outgoing.destroyed || outgoing.req.socket.destroyed) && !outgoing.writableFinished;
  }

  /** Calls `callback` if the response that follows is not written to the socket completely. */
  onUndelivered(callback: () => void): void {
    const { outgoing } = this.#request;
    if (this.isGone()) {
      callback();
      return;
    }
    // A destroyed socket runs its pending write callbacks as if they had succeeded, so `finish` counts only while
    // there is a socket.
    const { socket } = outgoing.req;
    let flushed = false;
    outgoing.once("finish", () => {
      flushed = socket?.destroyed === false;
    });
    let called = false;
    const closed = () => {
      socket.off("close", closed);
      if (!flushed && !called) callback();
      called = true;
    };
    outgoing.once("close", closed);
    socket.once("close", closed);
  }

  /** Waits until this many bytes may be buffered for the reader of a stream; resolves to a function that releases them. */
  reserve(bytes: number): Promise<() => void> {
    return this.#outflow.reserve(this.principal.text, bytes, () => this.cut());
  }

  /** The pace at which stored events are loaded for this reader. */
  pace(signal: StopSignal): ReplayPace {
    const { principal, broker } = this;
    return {
      hold: (bytes) => this.#outflow.hold(principal.text, bytes, () => this.cut(), signal),
      turn: () => broker.readLimiter.acquireWhile(principal, signal),
    };
  }

  /** Closes the connection, because its reader has stopped reading. */
  cut(): void {
    this.#request.outgoing.destroy();
  }
}

export const noToken = (): ErrandError =>
  new ErrandError("unauthenticated", "The request has no bearer token.");
