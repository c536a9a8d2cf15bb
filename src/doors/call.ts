/**
 * One request as the routes see it: who calls, with what, and until when. Limit: the body is read whole;
 * streams go out only.
 */
import type { ServerResponse } from "node:http";
import { type Principal, toPrincipal } from "../engine/access.ts";
import type { Broker } from "../engine/context.ts";
import type { Quota } from "../engine/quotas.ts";
import type { Hold, Identity } from "../engine/tokens.ts";
import { ErrandError } from "../schema/errors.ts";

/** A reason of our own: the standard one is an exception, with a stack to be made. */
const ENDED = "the request is over";

export class Call {
  readonly broker: Broker;
  readonly requestId: string;
  /** A header of the request, by its name in small letters. */
  readonly header: (name: string) => string | undefined;
  readonly #identity: Identity;
  readonly #outgoing: ServerResponse | undefined;
  readonly #ends: Set<() => void>;
  #principal: Principal | undefined;

  constructor(options: {
    broker: Broker;
    requestId: string;
    header: (name: string) => string | undefined;
    identity: Identity;
    outgoing: ServerResponse | undefined;
    /** Called when the gateway stops. */
    ends: Set<() => void>;
  }) {
    this.broker = options.broker;
    this.requestId = options.requestId;
    this.header = options.header;
    this.#identity = options.identity;
    this.#outgoing = options.outgoing;
    this.#ends = options.ends;
  }

  get principal(): Principal {
    this.#principal ??= toPrincipal(this.#identity.principal);
    return this.#principal;
  }

  /**
   * For what takes long: the signal aborts when the client leaves, the token ends or the gateway stops.
   * `release` is owed once the work is over. A token that ended is told by `throwIfRevoked`. What counts against a
   * quota throws `quota_exceeded` beyond it.
   */
  hold(quota: Quota | null): { signal: AbortSignal; release: () => void; throwIfRevoked: () => void } {
    const giveBack = quota === null ? undefined : this.broker.quotas.take(this.principal, quota);
    const controller = new AbortController();
    const abort = () => controller.abort(ENDED);
    const outgoing = this.#outgoing;
    outgoing?.on("close", abort);
    outgoing?.req.socket.on("close", abort);
    // A set, and not a listener each of one signal: that would search them all for one to be removed.
    this.#ends.add(abort);
    const token = this.broker.tokens.hold(this.#identity, abort);
    if (this.isGone()) abort();
    return {
      signal: controller.signal,
      release: () => {
        giveBack?.();
        token.release();
        this.#ends.delete(abort);
        outgoing?.off("close", abort);
        outgoing?.req.socket.off("close", abort);
      },
      throwIfRevoked: () => {
        if (token.hasEnded()) {
          throw new ErrandError("unauthenticated", "The token expired or was revoked while waiting.");
        }
      },
    };
  }

  /** For what outlives the request: calls `end` when its token ends. `release` is owed. */
  holdToken(end: () => void): Hold {
    return this.broker.tokens.hold(this.#identity, end);
  }

  /**
   * Runs what may wait so long under a {@link hold}; a token that ended meanwhile makes it 401. Anything that is to
   * be refused when too many wait belongs inside.
   */
  async whileHeld<T>(wait_seconds: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const hold = this.hold(wait_seconds > 0 ? "polls" : null);
    try {
      const result = await work(hold.signal);
      hold.throwIfRevoked();
      return result;
    } finally {
      hold.release();
    }
  }

  /** The connection is closed and the answer was not out before. */
  isGone(): boolean {
    const outgoing = this.#outgoing;
    return (
      outgoing !== undefined &&
      (outgoing.destroyed || outgoing.req.socket.destroyed) &&
      !outgoing.writableFinished
    );
  }

  /** Calls `lost` if the answer about to be sent never reaches the socket whole. */
  onLost(lost: () => void): void {
    const outgoing = this.#outgoing;
    if (!outgoing) return;
    if (this.isGone()) {
      lost();
      return;
    }
    // A socket that is destroyed runs its pending callbacks as if they had been served, so `finish` counts only
    // while there is a socket.
    const { socket } = outgoing.req;
    let flushed = false;
    outgoing.once("finish", () => {
      flushed = socket?.destroyed === false;
    });
    let told = false;
    const closed = () => {
      socket.off("close", closed);
      if (!flushed && !told) lost();
      told = true;
    };
    outgoing.once("close", closed);
    socket.once("close", closed);
  }

  /** Cuts the connection: its reader has stopped reading. */
  cut(): void {
    this.#outgoing?.destroy();
  }
}
