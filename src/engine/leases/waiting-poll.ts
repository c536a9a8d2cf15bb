/** One poll of an agent's worker: waits for leases until its time is up. */
import type { Result } from "../../lifecycle/outcome.ts";
import type { Fetched, Poll, PollSignal } from "../../queue/parked-poll.ts";
import type { LeaseRequest } from "../../schema/lease.ts";
import type { Found, Granted, Handoff, PollTerms } from "./handoff.ts";

/** One object is the poll, its entry among the parked polls, and its terms, because there may be thousands. */
export class WaitingPoll implements PollTerms, Poll<Found, PollTerms, Result> {
  readonly agent: string;
  readonly request: LeaseRequest;
  readonly signal: PollSignal;
  readonly #handoff: Handoff;
  /** By `performance.now()`. */
  readonly #until: number;
  afterWake = false;

  constructor(handoff: Handoff, agent: string, request: LeaseRequest, signal: PollSignal) {
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

  fetch(first?: Result): Promise<Fetched<Found>> {
    return this.#handoff.fetch(this, first);
  }

  /** The first lease; null when the time was up or the signal aborted. */
  async wait(): Promise<Granted | null> {
    if (this.request.wait_seconds === 0) return this.more();
    let found = await this.#park();
    while (found === "blocked") {
      // A fetch before the next wake would find the agent blocked again.
      this.afterWake = true;
      const parked = this.#park();
      this.#handoff.wakeIfUnblocked(this.agent);
      found = await parked;
    }
    return found;
  }

  /** Takes a lease if work is queued now; null otherwise. */
  async more(): Promise<Granted | null> {
    const { found } = await this.fetch();
    return found === "blocked" ? null : found;
  }

  #park(): Promise<Found | null> {
    return this.#handoff.polls.park(this.agent, this);
  }
}
