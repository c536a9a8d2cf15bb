/**
 * One request as the routes see it: who calls, with what, and until when. Limit: the body is read whole;
 * streams go out only.
 */
import { type Principal, toPrincipal } from "../../engine/access/access.ts";
import type { Quota } from "../../engine/access/quotas.ts";
import type { Identity, TokenHold } from "../../engine/access/tokens.ts";
import type { Broker } from "../../engine/broker.ts";
import type { Leaver, Leaving } from "../../queue/parked-polls.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { Inbound } from "./gate.ts";
import type { Outflow } from "./outflow.ts";

/** A reason of our own: the standard one is an exception, with a stack to be made. */
const ENDED = "the request is over";

/** What is to end when the gateway stops. */
export class Ends {
  readonly #open = new Set<() => void>();
  #over = false;

  get size(): number {
    return this.#open.size;
  }

  /** Called at once when the gateway is stopping already: a request may have come before that, and wait only now. */
  add(end: () => void): void {
    this.#open.add(end);
    if (this.#over) end();
  }

  delete(end: () => void): void {
    this.#open.delete(end);
  }

  endAll(): void {
    this.#over = true;
    for (const end of this.#open) end();
  }
}

export class Call {
  readonly broker: Broker;
  readonly #inbound: Inbound;
  readonly #identity: Identity;
  readonly #ends: Ends;
  readonly #outflow: Outflow;
  #principal: Principal | undefined;

  constructor(broker: Broker, inbound: Inbound, identity: Identity, ends: Ends, outflow: Outflow) {
    this.broker = broker;
    this.#outflow = outflow;
    this.#inbound = inbound;
    this.#identity = identity;
    this.#ends = ends;
  }

  get requestId(): string {
    return this.#inbound.requestId;
  }

  /** Called once, when the request no longer counts as in progress: it is answered, or waits from now on. */
  onTurnEnd: (() => void) | null = null;

  /** A call with a turn of its own, for one of the messages in this request. */
  part(): Call {
    return new Call(this.broker, this.#inbound, this.#identity, this.#ends, this.#outflow);
  }

  endTurn(): void {
    const end = this.onTurnEnd;
    this.onTurnEnd = null;
    end?.();
  }

  /** A header of the request, by its name in small letters. */
  header(name: string): string | undefined {
    return this.#inbound.header(name);
  }

  get principal(): Principal {
    this.#principal ??= toPrincipal(this.#identity.principal);
    return this.#principal;
  }

  /**
   * For what takes long; `release` is owed once the work is over. What counts against a quota throws `quota_exceeded`
   * beyond it.
   */
  hold(quota: Quota | null): Hold {
    return new Hold(this, quota, this.#inbound.outgoing, this.#ends);
  }

  /** For what outlives the request: calls `end` when its token ends. `release` is owed. */
  holdToken(end: () => void): TokenHold {
    return this.broker.tokens.hold(this.#identity, end);
  }

  /**
   * Runs what may wait so long under a {@link hold}; a token that ended meanwhile makes it 401. Anything that is to
   * be refused when too many wait belongs inside. (Not async: a parked poll would keep the frame.)
   */
  whileHeld<T>(
    wait_seconds: number,
    work: (hold: Hold) => Promise<T>,
    quota: Quota | null = "polls",
  ): Promise<T> {
    const hold = this.hold(wait_seconds > 0 ? quota : null);
    if (wait_seconds > 0) this.endTurn();
    const failed = (error: unknown): never => {
      hold.release();
      throw error;
    };
    try {
      return work(hold).then((result) => {
        hold.release();
        hold.throwIfRevoked();
        return result;
      }, failed);
    } catch (error) {
      return failed(error);
    }
  }

  /** The connection is closed and the answer was not out before. */
  isGone(): boolean {
    const { outgoing } = this.#inbound;
    return (
      outgoing !== undefined &&
      (outgoing.destroyed || outgoing.req.socket.destroyed) &&
      !outgoing.writableFinished
    );
  }

  /** Calls `lost` if the answer about to be sent never reaches the socket whole. */
  onLost(lost: () => void): void {
    const { outgoing } = this.#inbound;
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

  /** Waits until so many bytes may be held for the reader of a stream; resolves to a function that releases them. */
  room(bytes: number): Promise<() => void> {
    return this.#outflow.room(this.principal.text, bytes, () => this.cut());
  }

  /** Cuts the connection: its reader has stopped reading. */
  cut(): void {
    this.#inbound.outgoing?.destroy();
  }
}

/**
 * What a request holds while it takes long, until the client leaves, the token ends or the gateway stops. A poll is
 * parked with this itself in the place of a signal; an AbortSignal is made for whoever asks for one. Limit: whoever
 * made it owes the release.
 */
export class Hold implements Leaving {
  readonly #call: Call;
  readonly #quota: Quota | null;
  readonly #outgoing: Inbound["outgoing"];
  readonly #ends: Ends;
  readonly #token: TokenHold;
  readonly #end = () => this.#abort();
  #controller: AbortController | undefined;
  #listener: Leaver | undefined;
  #released = false;
  aborted = false;

  constructor(call: Call, quota: Quota | null, outgoing: Inbound["outgoing"], ends: Ends) {
    if (quota !== null) {
      call.broker.quotas.take(call.principal, quota);
      call.endTurn();
    }
    this.#call = call;
    this.#quota = quota;
    this.#outgoing = outgoing;
    this.#ends = ends;
    outgoing?.on("close", this.#end);
    outgoing?.req.socket.on("close", this.#end);
    // A set, and not a listener each of one signal: that would search them all for one to be removed.
    ends.add(this.#end);
    this.#token = call.holdToken(this.#end);
    if (call.isGone()) this.#abort();
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.aborted) this.#controller.abort(ENDED);
    }
    return this.#controller.signal;
  }

  addEventListener(type: "abort", listener: Leaver): void {
    // Nearly always there is but one.
    if (this.#listener) this.signal.addEventListener(type, listener);
    else this.#listener = listener;
  }

  removeEventListener(type: "abort", listener: Leaver): void {
    if (this.#listener === listener) this.#listener = undefined;
    else this.#controller?.signal.removeEventListener(type, listener);
  }

  throwIfRevoked(): void {
    if (this.#token.hasEnded()) {
      throw new ErrandError("unauthenticated", "The token expired or was revoked while waiting.");
    }
  }

  /** Once or more often. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    if (this.#quota !== null) this.#call.broker.quotas.giveBack(this.#call.principal, this.#quota);
    this.#token.release();
    this.#ends.delete(this.#end);
    this.#outgoing?.off("close", this.#end);
    this.#outgoing?.req.socket.off("close", this.#end);
  }

  #abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    this.#listener?.handleEvent();
    this.#controller?.abort(ENDED);
  }
}
