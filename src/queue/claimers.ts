/**
 * Parked polls: who waits for a ticket of which agent, and the fetches that wakes set off.
 * Limit: in one process; gateways wake each other by one pub/sub channel for each shard.
 *
 * A wake that arrives while a fetch is in flight must not be lost: wakes are counted, a fetch takes one
 * when it starts, and when it ends empty another starts as long as one is left.
 */
import type { Popped, Tickets } from "./tickets.ts";

interface Waiter {
  readonly resolve: (ticket: Popped | null) => void;
  readonly reject: (error: unknown) => void;
}

interface Agent {
  readonly waiters: Set<Waiter>;
  wakes: number;
  /** More may wait than was told of: look until a look finds nothing. */
  drain: boolean;
  fetching: number;
  /** When the oldest wake came that is not yet served, ms; 0 for none. */
  wokenAt: number;
  due: { at: number; timer: NodeJS.Timeout } | null;
  recheck: NodeJS.Timeout | null;
}

export interface ClaimersOptions {
  readonly tickets: Pick<Tickets, "pop" | "putBack">;
  /** Told when a popped ticket goes back because its poll left meanwhile. */
  readonly onPutBack: (agent: string) => void;
  /** A look at the queue failed; whether a ticket was popped is not known. */
  readonly onError: (error: unknown, agent: string) => void;
  /** How long a parked poll took from its wake to its ticket, ms. */
  readonly onWoken?: (ms: number) => void;
  /** Net under the wakes: agents with parked polls are fetched for this often, jittered. */
  readonly recheckMs?: number;
}

/** No timer of Node runs longer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class Claimers {
  readonly #agents = new Map<string, Agent>();
  readonly #options: ClaimersOptions;
  readonly #recheckMs: number;

  constructor(options: ClaimersOptions) {
    this.#options = options;
    this.#recheckMs = options.recheckMs ?? 30_000;
  }

  /** Parked polls of an agent at this gateway. */
  waiting(agent: string): number {
    return this.#agents.get(agent)?.waiters.size ?? 0;
  }

  /** Parked polls of all agents at this gateway. */
  parked(): number {
    let polls = 0;
    for (const { waiters } of this.#agents.values()) polls += waiters.size;
    return polls;
  }

  /** Every agent with a parked poll. */
  agents(): IterableIterator<string> {
    return this.#agents.keys();
  }

  /** Something new may be in the agent's queue: one ticket, or (`drain`) any number of them. */
  wake(name: string, drain = true): void {
    const agent = this.#agents.get(name);
    if (!agent) return;
    agent.drain ||= drain;
    agent.wakes = Math.min(agent.wakes + 1, agent.waiters.size + agent.fetching);
    agent.wokenAt ||= performance.now();
    this.#pump(name, agent);
  }

  /** After a gap in the wakes (a lost subscription), everybody looks again. */
  wakeAll(): void {
    for (const name of this.#agents.keys()) this.wake(name);
  }

  /**
   * Resolves with the next ticket, or null when `signal` aborts first (the caller's deadline, a client
   * that left, a shutdown). `fetch: false` parks without looking: the queue was just seen to be held.
   */
  claim(name: string, signal: AbortSignal, fetch = true): Promise<Popped | null> {
    if (signal.aborted) return Promise.resolve(null);
    const agent = this.#agent(name);
    return new Promise((resolve, reject) => {
      const leave = () => {
        agent.waiters.delete(waiter);
        resolve(null);
        this.#tidy(name, agent);
      };
      const settle =
        <T>(then: (value: T) => void) =>
        (value: T) => {
          signal.removeEventListener("abort", leave);
          then(value);
        };
      const waiter: Waiter = { resolve: settle(resolve), reject: settle(reject) };
      // Parked before the fetch: a ticket that comes in between finds it.
      agent.waiters.add(waiter);
      signal.addEventListener("abort", leave, { once: true });
      // For itself: what else may wait is the others' to hear of.
      if (fetch) this.wake(name, false);
    });
  }

  #agent(name: string): Agent {
    let agent = this.#agents.get(name);
    if (!agent) {
      agent = {
        waiters: new Set(),
        wakes: 0,
        drain: false,
        fetching: 0,
        wokenAt: 0,
        due: null,
        recheck: null,
      };
      this.#agents.set(name, agent);
      this.#scheduleRecheck(name, agent);
    }
    return agent;
  }

  #pump(name: string, agent: Agent): void {
    while (agent.wakes > 0 && agent.fetching < agent.waiters.size) {
      agent.wakes -= 1;
      agent.fetching += 1;
      void this.#fetch(name, agent).finally(() => {
        agent.fetching -= 1;
        this.#pump(name, agent);
        this.#tidy(name, agent);
      });
    }
  }

  async #fetch(name: string, agent: Agent): Promise<void> {
    try {
      const { wokenAt } = agent;
      agent.wokenAt = 0;
      const { popped, ...empty } = await this.#options.tickets.pop(name);
      if (popped && wokenAt > 0) this.#options.onWoken?.(performance.now() - wokenAt);
      if (!popped) {
        agent.drain = false;
        if ("next_due_at" in empty && empty.next_due_at !== null)
          this.#wakeAt(name, agent, empty.next_due_at);
        return;
      }
      const waiter = this.#next(agent);
      if (waiter) {
        // Every ticket is told of by a wake of its own; only where that may not be so is looked again.
        if (agent.drain) agent.wakes = Math.max(agent.wakes, 1);
        waiter.resolve(popped);
      } else {
        await this.#options.tickets.putBack(popped);
        this.#options.onPutBack(name);
      }
    } catch (error) {
      this.#options.onError(error, name);
      this.#next(agent)?.reject(error);
      // The wake was not for that poll alone: the next looks too.
      if (agent.waiters.size > 0) agent.wakes = Math.max(agent.wakes, 1);
    }
  }

  #next(agent: Agent): Waiter | undefined {
    const first = agent.waiters.values().next();
    if (first.done) return undefined;
    agent.waiters.delete(first.value);
    return first.value;
  }

  /** Delayed tickets are promoted by whoever fetches; nobody else will look when one falls due. */
  #wakeAt(name: string, agent: Agent, at: number): void {
    if (agent.due && agent.due.at <= at) return;
    if (agent.due) clearTimeout(agent.due.timer);
    const timer = setTimeout(
      () => {
        agent.due = null;
        this.wake(name);
      },
      Math.min(Math.max(0, at - Date.now()) + 1, MAX_TIMER_MS),
    );
    agent.due = { at, timer };
  }

  #scheduleRecheck(name: string, agent: Agent): void {
    agent.recheck = setTimeout(
      () => {
        this.wake(name);
        this.#scheduleRecheck(name, agent);
      },
      this.#recheckMs * (0.75 + Math.random() / 2),
    ).unref();
  }

  #tidy(name: string, agent: Agent): void {
    if (agent.waiters.size > 0 || agent.fetching > 0 || this.#agents.get(name) !== agent) return;
    if (agent.due) clearTimeout(agent.due.timer);
    if (agent.recheck) clearTimeout(agent.recheck);
    this.#agents.delete(name);
  }
}
