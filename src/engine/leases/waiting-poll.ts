/** One poll of an agent's worker: waits for leases until its time is up. */
import type { Result } from "../../lifecycle/outcome.ts";
import type { LeaseRequest } from "../../schema/lease.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import type { Granted, Handoff, PollTerms } from "./handoff.ts";
import type { Fetched, Poll, Settle } from "./parked-poll.ts";

/** One object is the poll and its terms, because there may be thousands. */
export class WaitingPoll implements PollTerms, Poll<Granted, PollTerms, Result> {
  readonly agent: string;
  readonly request: LeaseRequest;
  readonly signal: StopSignal;
  readonly #handoff: Handoff;
  /** By `performance.now()`. */
  readonly #until: number;

  constructor(handoff: Handoff, agent: string, request: LeaseRequest, signal: StopSignal) {
    this.#handoff = handoff;
    this.agent = agent;
    this.request = request;
    this.signal = signal;
    this.#until = performance.now() + request.wait_seconds * 1000;
  }

  get terms(): PollTerms {
    return this;
  }

  get wait_ms(): number {
    return Math.max(0, this.#until - performance.now());
  }

  fetch(taken?: Result): Promise<Fetched<Granted>> {
    return this.#handoff.fetch(this, taken);
  }

  /** Settles with the first lease; with null when the time was up or the signal aborted. */
  wait(settle: Settle<Granted>): void {
    if (this.request.wait_seconds === 0) settle(this.more());
    else if (this.#handoff.takeKept(this)) this.#fetchFirst(settle);
    else this.#park(settle);
  }

  #park(settle: Settle<Granted>): void {
    this.#handoff.polls.add(this.agent, this, settle);
  }

  #fetchFirst(settle: Settle<Granted>): void {
    this.more().then(
      (found) => (found === null ? this.#park(settle) : settle(found)),
      (error: unknown) => settle(Promise.reject(error)),
    );
  }

  /** Takes a lease if work is queued now; null otherwise. */
  async more(): Promise<Granted | null> {
    return (await this.fetch()).found;
  }
}
