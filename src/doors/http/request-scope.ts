/**
 * The resources of a request that waits or streams: its place in a quota, a watch on its token, listeners on its
 * connection. The scope aborts when the client disconnects, the token ends or the gateway stops. Limit: the code that
 * opens a scope must release it.
 */
import type { Principal } from "../../engine/access/access.ts";
import type { Quota } from "../../engine/access/quotas.ts";
import type { TokenWatch } from "../../engine/access/revocations.ts";
import type { Broker } from "../../engine/broker.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { AbortListener, StopSignal } from "../../util/stop-signal.ts";
import type { IncomingRequest } from "./incoming-request.ts";
import type { ShutdownHooks } from "./shutdown-hooks.ts";

/** A string, because the default reason is an exception whose stack takes memory. */
const ENDED = "the request has ended";

/** The part of an AuthenticatedRequest that a scope needs. */
interface Owner {
  readonly broker: Broker;
  readonly principal: Principal;
  endTurn(): void;
  watchToken(onEnd: () => void): TokenWatch;
  isGone(): boolean;
}

/** A parked poll uses the scope itself as its signal; an AbortSignal is created only for code that needs one. */
export class RequestScope implements StopSignal {
  readonly #owner: Owner;
  readonly #quota: Quota | null;
  readonly #outgoing: IncomingRequest["outgoing"];
  readonly #hooks: ShutdownHooks;
  readonly #token: TokenWatch;
  /** Bound, because an arrow function would also retain a context. */
  readonly #end = this.#abort.bind(this);
  #controller: AbortController | undefined;
  #listener: AbortListener | undefined;
  /** Further listeners; there are few. */
  #others: readonly AbortListener[] = [];
  #released = false;
  aborted = false;

  /** Throws `quota_exceeded` when the quota is used up. */
  constructor(
    owner: Owner,
    quota: Quota | null,
    outgoing: IncomingRequest["outgoing"],
    hooks: ShutdownHooks,
    waits: boolean,
  ) {
    if (quota !== null) {
      owner.broker.quotas.acquire(owner.principal, quota);
      owner.endTurn();
    }
    this.#owner = owner;
    this.#quota = quota;
    this.#outgoing = outgoing;
    this.#hooks = hooks;
    outgoing.on("close", this.#end);
    outgoing.req.socket.on("close", this.#end);
    hooks.add(this.#end, waits);
    this.#token = owner.watchToken(this.#end);
    if (owner.isGone()) this.#abort();
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.aborted) this.#controller.abort(ENDED);
    }
    return this.#controller.signal;
  }

  addEventListener(_type: "abort", listener: AbortListener): void {
    if (this.#listener) this.#others = [...this.#others, listener];
    else this.#listener = listener;
  }

  removeEventListener(_type: "abort", listener: AbortListener): void {
    if (this.#listener === listener) this.#listener = undefined;
    else this.#others = this.#others.filter((other) => other !== listener);
  }

  throwIfRevoked(): void {
    if (this.#token.hasEnded()) {
      throw new ErrandError("unauthenticated", "The token expired or was revoked during the request.");
    }
  }

  /** May be called more than once. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    if (this.#quota !== null) this.#owner.broker.quotas.release(this.#owner.principal, this.#quota);
    this.#token.release();
    this.#hooks.delete(this.#end);
    this.#outgoing.off("close", this.#end);
    this.#outgoing.req.socket.off("close", this.#end);
  }

  #abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    this.#listener?.handleEvent();
    for (const listener of this.#others) listener.handleEvent();
    this.#controller?.abort(ENDED);
  }
}
