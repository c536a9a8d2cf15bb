/** One parked poll: it ends when a fetch finds something, when its time is up, or when its caller leaves. */
import type { AbortListener, StopSignal } from "../../util/stop-signal.ts";

/** The result of one fetch from the queue. */
export interface Fetched<T> {
  readonly found: T | null;
  /** When the next delayed ticket is due, ms; absent when none is known. */
  readonly next_due_at?: number | null;
  /** The agent gets no work now (paused, or at capacity). Fetching again is useless until the next wake. */
  readonly blocked?: boolean;
}

/** One poll. `Taken` is the result of taking a ticket, by this poll or by a match for it. */
export interface Poll<T, Terms = never, Taken = never> {
  readonly signal: StopSignal;
  /** Fetches from the queue. `taken`: a match has made the first attempt for this poll, with this result. */
  fetch(taken?: Taken): Promise<Fetched<T>>;
  /** The terms on which a match takes a ticket for this poll. A poll without terms is not matched. */
  readonly terms?: Terms;
  /** Absent: only the signal ends the poll. */
  readonly wait_ms?: number;
}

/** A parked poll as its callers see it: without the type of what its fetches find. */
export type Parked<Terms, Taken> = Pick<
  ParkedPoll<unknown, Terms, Taken, unknown>,
  "terms" | "left" | "fetch" | "end" | "fail"
>;

/** Called once, with what was found; null when nothing was. */
export type Settle<T> = (found: T | null | Promise<T | null>) => void;

/** Called when the poll's caller stops waiting; `agent` is what the poll was made with. */
export type Leave<Terms, Taken, Agent> = (agent: Agent, poll: Parked<Terms, Taken>) => void;

/** A class, because there may be thousands, and closures or a copy of the terms would take more memory. */
export class ParkedPoll<T, Terms, Taken, Agent> implements AbortListener {
  readonly #poll: Poll<T, Terms, Taken>;
  readonly #agent: Agent;
  readonly #leave: Leave<Terms, Taken, Agent>;
  readonly #settle: Settle<T>;
  readonly #timer: NodeJS.Timeout | undefined;
  /** Its caller has stopped waiting. */
  left = false;

  constructor(
    poll: Poll<T, Terms, Taken>,
    agent: Agent,
    leave: Leave<Terms, Taken, Agent>,
    settle: Settle<T>,
  ) {
    this.#poll = poll;
    this.#agent = agent;
    this.#leave = leave;
    this.#settle = settle;
    this.#timer = poll.wait_ms === undefined ? undefined : setTimeout(timeUp, poll.wait_ms, this);
    poll.signal.addEventListener("abort", this);
  }

  /** Called when the time is up or the signal aborts. */
  handleEvent(): void {
    this.left = true;
    this.#leave(this.#agent, this);
  }

  get terms(): Terms | undefined {
    return this.#poll.terms;
  }

  /** Ends the poll when something is found. */
  async fetch(taken?: Taken): Promise<Fetched<true>> {
    const fetched = await this.#poll.fetch(taken);
    if (fetched.found === null) return { ...fetched, found: null };
    this.#over();
    this.#settle(fetched.found);
    return { ...fetched, found: true };
  }

  end(): void {
    this.#over();
    this.#settle(null);
  }

  fail(error: unknown): void {
    this.#over();
    this.#settle(Promise.reject(error));
  }

  #over(): void {
    clearTimeout(this.#timer);
    this.#poll.signal.removeEventListener("abort", this);
  }
}

/** One function for all timers, to save a closure for each. */
const timeUp = (poll: AbortListener): void => poll.handleEvent();
