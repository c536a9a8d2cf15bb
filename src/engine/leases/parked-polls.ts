/**
 * Parked polls: the polls of an agent that wait for work, and the fetches that wakes start for them. Limit: one
 * process; handoff.ts passes on the wakes of other gateways, and explains how work reaches a poll.
 *
 * A wake that arrives during a fetch must not be lost: wakes are counted, a fetch uses one up when it starts, and when
 * it ends empty another starts as long as one is left.
 */
import { MAX_TIMER_MS } from "../../util/timing.ts";
import { type Leave, type Parked, ParkedPoll, type Poll, type Settle } from "./parked-poll.ts";

/** A parked poll that was chosen for the caller's ticket. */
export interface Match<Terms, Taken> {
  readonly terms: Terms;
  /** Call it at once. `taking` resolves to the result of taking a ticket. With null, the poll stays parked. */
  readonly settle: (taking: Promise<Taken | null>) => void;
}

export interface ParkedPollsOptions {
  /** A fetch failed; whether it took something is not known. */
  readonly onError: (error: unknown, agent: string) => void;
  /** Called with the time from a poll's wake to finding something, ms. */
  readonly onWoken?: (ms: number) => void;
  /** Each agent with parked polls is checked this often, jittered, in case a wake was lost. */
  readonly recheckMs?: number;
  /** Resolves to those of these agents whose queues are not empty. Without it, a check wakes every agent. */
  readonly findQueued?: (agents: readonly string[]) => Promise<Iterable<string>>;
}

interface Agent<Terms, Taken> {
  readonly name: string;
  readonly idle: Set<Parked<Terms, Taken>>;
  /** Fetches in flight; a poll that is fetching is not in `idle`. */
  fetching: number;
  wakes: number;
  /** There may be more tickets than wakes: fetch until a fetch finds nothing. */
  drain: boolean;
  /** Raised when there may be more tickets than wakes. A fetch of an older generation cannot conclude "empty". */
  generation: number;
  /** Known empty in this generation: a fetch found nothing, and every wake has been used up. */
  emptyIn: number;
  /** A fetch found the agent blocked, and no wake has come for that since. */
  blocked: boolean;
  /** How often it may have been unblocked: a fetch that began before the last time cannot conclude "blocked". */
  unblocks: number;
  /** When the oldest unused wake came, ms; 0 for none. */
  wokenAt: number;
  /** The timer for the next delayed ticket. */
  due: { at: number; timer: NodeJS.Timeout } | null;
  /** When it is checked next in case a wake was lost, ms. */
  recheckAt: number;
}

const UNKNOWN = -1;

/**
 * A round of rechecks visits every agent once, a part of them at each tick, and takes a sixth of `recheckMs`. So of
 * thousands of agents only a few are checked at the same time, and other work does not wait for them.
 */
const ROUND_TICKS = 50;
const ROUNDS = 6;

const isKnownEmpty = (agent: Pick<Agent<unknown, unknown>, "generation" | "emptyIn">): boolean =>
  agent.emptyIn === agent.generation;

const hasNoPolls = ({ idle, fetching }: Pick<Agent<unknown, unknown>, "idle" | "fetching">): boolean =>
  idle.size === 0 && fetching === 0;

export class ParkedPolls<Terms = never, Taken = never> {
  readonly #agents = new Map<string, Agent<Terms, Taken>>();
  readonly #options: ParkedPollsOptions;
  readonly #recheckMs: number;
  #rechecks: NodeJS.Timeout | null = null;
  /** The agents that this round of rechecks has not visited yet. */
  #round = this.#agents.entries();

  constructor(options: ParkedPollsOptions) {
    this.#options = options;
    this.#recheckMs = options.recheckMs ?? 30_000;
  }

  /** The number of an agent's parked polls, including those that are fetching. */
  count(name: string): number {
    const agent = this.#agents.get(name);
    return agent ? agent.idle.size + agent.fetching : 0;
  }

  /** The same for all agents. */
  countAll(): number {
    let polls = 0;
    for (const { idle, fetching } of this.#agents.values()) polls += idle.size + fetching;
    return polls;
  }

  /** Every agent with a parked poll. */
  agents(): string[] {
    return [...this.#agents].flatMap(([name, agent]) => (hasNoPolls(agent) ? [] : [name]));
  }

  /**
   * Resolves to what `fetch` found, or to null when the time is up or `signal` aborts first (the client left, the
   * gateway stops). A fetch in flight is waited for, so that nothing it took is lost: the caller may get something
   * although its signal has aborted.
   */
  park<T>(name: string, poll: Poll<T, Terms, Taken>): Promise<T | null> {
    return new Promise((settle) => this.add(name, poll, settle));
  }

  /** Like {@link park}, for a caller with a promise of its own: thousands of them would take memory. */
  add<T>(name: string, poll: Poll<T, Terms, Taken>, settle: Settle<T>): void {
    if (poll.signal.aborted) {
      settle(null);
      return;
    }
    const agent = this.#agent(name);
    // Parked before the fetch, so that a ticket that comes in between finds it.
    agent.idle.add(new ParkedPoll(poll, agent, this.#leave, settle));
    // If the queue is known to be empty, this poll needs no fetch.
    if (isKnownEmpty(agent)) this.#startFetches(name, agent);
    else this.wake(name, false);
  }

  /** Call it when something new may be in the agent's queue: one ticket, or (`drain`) any number of them. */
  wake(name: string, drain = true): void {
    const agent = this.#agents.get(name);
    if (!agent) return;
    agent.drain ||= drain;
    const maxWakes = agent.idle.size + 2 * agent.fetching;
    // If each wake leads to a fetch, no ticket stays in the queue. A wake above `maxWakes` leads to none, so one may stay.
    if (drain || agent.wakes >= maxWakes) agent.generation += 1;
    agent.wakes = Math.min(agent.wakes + 1, maxWakes);
    agent.wokenAt ||= performance.now();
    this.#startFetches(name, agent);
    this.#removeIfUnused(name, agent);
  }

  /** Call it when the agent may not be blocked any more. */
  wakeBlocked(name: string): void {
    const agent = this.#agents.get(name);
    if (!agent) return;
    agent.unblocks += 1;
    if (!agent.blocked) return;
    agent.blocked = false;
    this.wake(name);
  }

  /** Wakes the poll with such terms that has waited longest; false when none waits. */
  wakeOne(name: string, has: (terms: Terms) => boolean): boolean {
    const agent = this.#agents.get(name);
    for (const poll of agent?.idle ?? []) {
      if (!agent || poll.terms === undefined || !has(poll.terms)) continue;
      this.#markFetching(agent, poll);
      this.#fetch(name, agent, poll, performance.now());
      return true;
    }
    return false;
  }

  /** After a gap in the wakes (a lost subscription), every agent is woken. */
  wakeAll(): void {
    for (const name of this.#agents.keys()) this.wake(name);
  }

  /**
   * Chooses the poll that has waited longest, for a caller that is about to make a ticket and to take it in the poll's
   * name; null when none waits. The poll counts as fetching until the match is settled.
   */
  match(name: string): Match<Terms, Taken> | null {
    const agent = this.#agents.get(name);
    if (!agent) return null;
    for (const poll of agent.idle) {
      const { terms } = poll;
      if (terms === undefined) continue;
      this.#markFetching(agent, poll);
      const matchedAt = performance.now();
      return { terms, settle: (taking) => this.#fetch(name, agent, poll, matchedAt, taking) };
    }
    return null;
  }

  /** One function for all polls, to save a closure for each. */
  readonly #leave: Leave<Terms, Taken, Agent<Terms, Taken>> = (agent, poll) => {
    // A poll that is fetching ends after its fetch.
    if (!agent.idle.delete(poll)) return;
    poll.end();
    this.#removeIfUnused(agent.name, agent);
  };

  #agent(name: string): Agent<Terms, Taken> {
    let agent = this.#agents.get(name);
    if (!agent) {
      agent = {
        name,
        idle: new Set(),
        fetching: 0,
        wakes: 0,
        drain: false,
        generation: 0,
        emptyIn: UNKNOWN,
        blocked: false,
        unblocks: 0,
        wokenAt: 0,
        due: null,
        recheckAt: this.#nextRecheck(),
      };
      this.#agents.set(name, agent);
      // One timer for all agents, because there may be thousands.
      this.#rechecks ??= setInterval(() => this.#recheck(), this.#recheckMs / (ROUNDS * ROUND_TICKS)).unref();
    }
    return agent;
  }

  #startFetches(name: string, agent: Agent<Terms, Taken>): void {
    for (const poll of agent.idle) {
      if (agent.wakes === 0) return;
      agent.wakes -= 1;
      const { wokenAt } = agent;
      agent.wokenAt = 0;
      this.#markFetching(agent, poll);
      this.#fetch(name, agent, poll, wokenAt);
    }
  }

  #markFetching(agent: Agent<Terms, Taken>, poll: Parked<Terms, Taken>): void {
    agent.fetching += 1;
    agent.idle.delete(poll);
  }

  /** Fetches for a poll that is no longer idle. `taking`: the result of its match. */
  #fetch(
    name: string,
    agent: Agent<Terms, Taken>,
    poll: Parked<Terms, Taken>,
    wokenAt: number,
    taking?: Promise<Taken | null>,
  ): void {
    void this.#attempt(name, agent, poll, wokenAt, taking).finally(() => {
      this.#startFetches(name, agent);
      this.#removeIfUnused(name, agent);
    });
  }

  async #attempt(
    name: string,
    agent: Agent<Terms, Taken>,
    poll: Parked<Terms, Taken>,
    wokenAt: number,
    taking?: Promise<Taken | null>,
  ): Promise<void> {
    const { generation, unblocks } = agent;
    try {
      const taken = taking && (await taking);
      // The match took no ticket, and says nothing about the queue.
      if (taken === null) {
        this.#park(agent, poll);
        return;
      }
      const { found, next_due_at, blocked = false } = await poll.fetch(taken);
      const isCurrent = agent.generation === generation;
      if (isCurrent && !found) agent.drain = false;
      if (found && wokenAt > 0) this.#options.onWoken?.(performance.now() - wokenAt);
      // Usually every ticket has its own wake; only a drain must fetch again.
      if ((found || blocked) && agent.drain) this.#fetchAgain(agent);
      if (found) return;
      if (blocked) {
        // Its queue may have tickets, so the next poll fetches, in case the wake at the end of the block is lost.
        agent.emptyIn = UNKNOWN;
        agent.blocked = true;
        this.#park(agent, poll);
        if (agent.unblocks !== unblocks) this.#fetchAgain(agent);
        return;
      }
      if (isCurrent) agent.emptyIn = agent.wakes === 0 ? generation : UNKNOWN;
      if (next_due_at) this.#wakeAt(name, agent, next_due_at);
      this.#park(agent, poll);
    } catch (error) {
      this.#options.onError(error, name);
      if (poll.left) poll.end();
      else poll.fail(error);
      // The wake was not only for this poll, so the next one fetches.
      this.#fetchAgain(agent);
    } finally {
      agent.fetching -= 1;
    }
  }

  #park(agent: Agent<Terms, Taken>, poll: Parked<Terms, Taken>): void {
    if (poll.left) poll.end();
    else agent.idle.add(poll);
  }

  #fetchAgain(agent: Agent<Terms, Taken>): void {
    agent.emptyIn = UNKNOWN;
    agent.wakes = Math.max(agent.wakes, 1);
  }

  /** A delayed ticket causes no wake when it falls due. */
  #wakeAt(name: string, agent: Agent<Terms, Taken>, at: number): void {
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

  #nextRecheck(): number {
    return performance.now() + this.#recheckMs * (0.75 + Math.random() / 2);
  }

  #recheck(): void {
    const due = this.#nextDue();
    if (due.length === 0) return;
    const wake = (agents: Iterable<string>) => {
      for (const name of agents) this.wake(name);
    };
    const { findQueued } = this.#options;
    if (!findQueued) wake(due);
    // When the queues cannot be read, each agent's own fetch reports why.
    else findQueued(due).then(wake, () => wake(due));
  }

  /** The agents at this tick's part of the round that are due for a check. */
  #nextDue(): string[] {
    const now = performance.now();
    const due: string[] = [];
    for (let left = Math.ceil(this.#agents.size / ROUND_TICKS); left > 0; left -= 1) {
      const next = this.#round.next();
      if (next.done) {
        this.#round = this.#agents.entries();
        break;
      }
      const [name, agent] = next.value;
      if (agent.recheckAt > now) continue;
      if (hasNoPolls(agent)) {
        this.#removeIfUnused(name, agent);
        continue;
      }
      agent.recheckAt = this.#nextRecheck();
      due.push(name);
    }
    return due;
  }

  #removeIfUnused(name: string, agent: Agent<Terms, Taken>): void {
    if (!hasNoPolls(agent) || this.#agents.get(name) !== agent) return;
    // A known empty queue is remembered for a while: the next poll, usually milliseconds away, parks without a fetch.
    if (isKnownEmpty(agent) && agent.recheckAt > performance.now()) return;
    if (agent.due) clearTimeout(agent.due.timer);
    this.#agents.delete(name);
    if (this.#agents.size > 0 || !this.#rechecks) return;
    clearInterval(this.#rechecks);
    this.#rechecks = null;
  }
}
