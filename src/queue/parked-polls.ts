/**
 * Parked polls: who waits for something of an agent's queue, and the looks that wakes set off.
 * Limit: in one process; other gateways' wakes come by the feed and one pub/sub channel for each shard.
 *
 * A wake that arrives while a look is in flight must not be lost: wakes are counted, a look takes one when it starts,
 * and when it ends empty another starts as long as one is left.
 */

/** What a look at the queue brought: something, or when the next delayed ticket is due. */
export interface Look<T> {
  readonly found: T | null;
  /** Ms; nothing when no delayed one is known of. */
  readonly next_due_at?: number | null;
  /** It was found that nothing is handed out: looking on is no use until somebody wakes (`drain`) when that ends. */
  readonly held?: boolean;
}

interface Agent<Terms, Brought> {
  readonly name: string;
  readonly idle: Set<Parked<Terms, Brought>>;
  /** Looks in flight, each of a poll that is not idle meanwhile. */
  looking: number;
  wakes: number;
  /** More may wait than was told of: look until a look finds nothing. */
  drain: boolean;
  /** A look found nothing, and for all that was told of since there was a look. */
  empty: boolean;
  /** Raised whenever more may wait than was told of; a look that began before knows nothing of that. */
  doubts: number;
  /** When the oldest wake came that is not yet served, ms; 0 for none. */
  wokenAt: number;
  due: { at: number; timer: NodeJS.Timeout } | null;
  /** When it is looked for without a wake, ms. */
  recheckAt: number;
}

/** What tells that a caller waits no longer: all of an AbortSignal that a poll needs, for that takes a kilobyte. */
export interface Leaving {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: Leaver): void;
  removeEventListener(type: "abort", listener: Leaver): void;
}

export interface Leaver {
  handleEvent(): void;
}

export interface Claim<T, Terms = never, Brought = never> {
  readonly signal: Leaving;
  /** With `brought`, what the first look would have found is known already. */
  look(brought?: Brought): Promise<Look<T>>;
  /** For whoever brings a ticket, to take it in this poll's name; without them it looks for itself. */
  readonly terms?: Terms;
  /** Without it there is only the signal. */
  readonly wait_ms?: number;
  /** Waits for a wake without looking: the queue was just seen to be held. */
  readonly park?: boolean;
}

/** A parked poll, lent to whoever brings the agent a ticket. */
export interface Lent<Terms, Brought> {
  readonly terms: Terms;
  /** Owed at once: what its look is to find, or null when there was none; then it waits on. */
  readonly done: (brought: Promise<Brought | null>) => void;
}

type Parked<Terms, Brought> = Pick<Poll<unknown, Terms, Brought>, "terms" | "left" | "look" | "end" | "fail">;

type Leave<Terms, Brought> = (agent: Agent<Terms, Brought>, poll: Parked<Terms, Brought>) => void;

/** One parked poll. (A class: there may be thousands, and closures take more, as does a copy of what was asked.) */
class Poll<T, Terms, Brought> implements Leaver {
  readonly #asked: Claim<T, Terms, Brought>;
  readonly #agent: Agent<Terms, Brought>;
  readonly #leave: Leave<Terms, Brought>;
  readonly #resolve: (found: T | null) => void;
  readonly #reject: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout | undefined;
  /** Its caller waits no longer. */
  left = false;

  constructor(
    asked: Claim<T, Terms, Brought>,
    agent: Agent<Terms, Brought>,
    leave: Leave<Terms, Brought>,
    resolve: (found: T | null) => void,
    reject: (error: unknown) => void,
  ) {
    this.#asked = asked;
    this.#agent = agent;
    this.#leave = leave;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = asked.wait_ms === undefined ? undefined : setTimeout(timeUp, asked.wait_ms, this);
    asked.signal.addEventListener("abort", this);
  }

  /** The time is up, or the signal aborted. */
  handleEvent(): void {
    this.left = true;
    this.#leave(this.#agent, this);
  }

  get terms(): Terms | undefined {
    return this.#asked.terms;
  }

  /** Ends it when something is found. */
  async look(brought?: Brought): Promise<Look<true>> {
    const seen = await this.#asked.look(brought);
    if (seen.found === null) return { ...seen, found: null };
    this.#over();
    this.#resolve(seen.found);
    return { ...seen, found: true };
  }

  end(): void {
    this.#over();
    this.#resolve(null);
  }

  fail(error: unknown): void {
    this.#over();
    this.#reject(error);
  }

  #over(): void {
    clearTimeout(this.#timer);
    this.#asked.signal.removeEventListener("abort", this);
  }
}

/** One function for all timers. */
const timeUp = (poll: Leaver): void => poll.handleEvent();

export interface ParkedPollsOptions {
  /** A look failed; whether it took something is not known. */
  readonly onError: (error: unknown, agent: string) => void;
  /** How long a parked poll took from its wake to what it found, ms. */
  readonly onWoken?: (ms: number) => void;
  /** Net under the wakes: agents with parked polls are looked for this often, jittered. */
  readonly recheckMs?: number;
}

/** No poll of it is here any more. */
const isLeft = ({ idle, looking }: Pick<Agent<unknown, unknown>, "idle" | "looking">): boolean =>
  idle.size === 0 && looking === 0;

/** No timer of Node runs longer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class ParkedPolls<Terms = never, Brought = never> {
  readonly #agents = new Map<string, Agent<Terms, Brought>>();
  readonly #options: ParkedPollsOptions;
  readonly #recheckMs: number;
  #rechecks: NodeJS.Timeout | null = null;

  constructor(options: ParkedPollsOptions) {
    this.#options = options;
    this.#recheckMs = options.recheckMs ?? 30_000;
  }

  /** Parked polls of an agent at this gateway. */
  waiting(name: string): number {
    const agent = this.#agents.get(name);
    return agent ? agent.idle.size + agent.looking : 0;
  }

  /** Parked polls of all agents at this gateway. */
  parked(): number {
    let polls = 0;
    for (const { idle, looking } of this.#agents.values()) polls += idle.size + looking;
    return polls;
  }

  /** Every agent with a parked poll. */
  agents(): string[] {
    return [...this.#agents].flatMap(([name, agent]) => (isLeft(agent) ? [] : [name]));
  }

  /** Something new may be in the agent's queue: one ticket, or (`drain`) any number of them. */
  wake(name: string, drain = true): void {
    const agent = this.#agents.get(name);
    if (!agent) return;
    agent.drain ||= drain;
    const most = agent.idle.size + 2 * agent.looking;
    // Told of one by one, all are looked for; more than there are polls to look are a backlog.
    if (drain || agent.wakes >= most) this.#doubt(agent);
    agent.wakes = Math.min(agent.wakes + 1, most);
    agent.wokenAt ||= performance.now();
    this.#pump(name, agent);
    this.#tidy(name, agent);
  }

  /**
   * A parked poll of the agent, for whoever is about to bring a ticket and look in its place; null when none waits. It
   * counts as looking until it is told what came of it.
   */
  lend(name: string): Lent<Terms, Brought> | null {
    const agent = this.#agents.get(name);
    if (!agent) return null;
    for (const poll of agent.idle) {
      const { terms } = poll;
      if (terms === undefined) continue;
      this.#take(agent, poll);
      const lentAt = performance.now();
      return { terms, done: (brought) => this.#look(name, agent, poll, lentAt, brought) };
    }
    return null;
  }

  /** After a gap in the wakes (a lost subscription), everybody looks again. */
  wakeAll(): void {
    for (const name of this.#agents.keys()) this.wake(name);
  }

  /**
   * Resolves with what `look` found, or null when the time is up or `signal` aborts first (a client that left, a
   * shutdown). A look under way is waited for, so that what it took is never lost: the caller may get something although
   * its signal has aborted.
   */
  claim<T>(name: string, asked: Claim<T, Terms, Brought>): Promise<T | null> {
    if (asked.signal.aborted) return Promise.resolve(null);
    const agent = this.#agent(name);
    return new Promise((resolve, reject) => {
      // Parked before the look: a ticket that comes in between finds it.
      agent.idle.add(new Poll(asked, agent, this.#leave, resolve, reject));
      // For itself: what else may wait is the others' to hear of. Where they found nothing, it would not either.
      if (agent.empty) this.#pump(name, agent);
      else if (!asked.park) this.wake(name, false);
    });
  }

  /** One function for all polls. */
  readonly #leave: Leave<Terms, Brought> = (agent, poll) => {
    // One that looks is ended when its look is.
    if (!agent.idle.delete(poll)) return;
    poll.end();
    this.#tidy(agent.name, agent);
  };

  #agent(name: string): Agent<Terms, Brought> {
    let agent = this.#agents.get(name);
    if (!agent) {
      agent = {
        name,
        idle: new Set(),
        looking: 0,
        wakes: 0,
        drain: false,
        empty: false,
        doubts: 0,
        wokenAt: 0,
        due: null,
        recheckAt: this.#nextRecheck(),
      };
      this.#agents.set(name, agent);
      // One timer for all: thousands of agents would have one each.
      this.#rechecks ??= setInterval(() => this.#recheck(), this.#recheckMs / 30).unref();
    }
    return agent;
  }

  #pump(name: string, agent: Agent<Terms, Brought>): void {
    for (const poll of agent.idle) {
      if (agent.wakes === 0) return;
      agent.wakes -= 1;
      const { wokenAt } = agent;
      agent.wokenAt = 0;
      this.#take(agent, poll);
      this.#look(name, agent, poll, wokenAt);
    }
  }

  #take(agent: Agent<Terms, Brought>, poll: Parked<Terms, Brought>): void {
    agent.looking += 1;
    agent.idle.delete(poll);
  }

  /** Of a poll that was taken; `lent`: what somebody brings it, or null when it was nothing. */
  #look(
    name: string,
    agent: Agent<Terms, Brought>,
    poll: Parked<Terms, Brought>,
    wokenAt: number,
    lent?: Promise<Brought | null>,
  ): void {
    void this.#outcome(name, agent, poll, wokenAt, lent).finally(() => {
      this.#pump(name, agent);
      this.#tidy(name, agent);
    });
  }

  async #outcome(
    name: string,
    agent: Agent<Terms, Brought>,
    poll: Parked<Terms, Brought>,
    wokenAt: number,
    lent?: Promise<Brought | null>,
  ): Promise<void> {
    const { doubts } = agent;
    try {
      const brought = lent && (await lent);
      // Nobody has looked: nothing is known that was not known before.
      if (brought === null) {
        this.#park(agent, poll);
        return;
      }
      const { found, next_due_at, held = false } = await poll.look(brought);
      const knows = agent.doubts === doubts;
      if (knows && (held || !found)) agent.drain = false;
      if (found) {
        if (wokenAt > 0 && !held) this.#options.onWoken?.(performance.now() - wokenAt);
        // Every ticket is told of by a wake of its own; only where that may not be so is looked again.
        if (agent.drain) this.#again(agent);
        return;
      }
      if (knows) agent.empty = agent.wakes === 0;
      if (next_due_at) this.#wakeAt(name, agent, next_due_at);
      this.#park(agent, poll);
    } catch (error) {
      this.#options.onError(error, name);
      if (poll.left) poll.end();
      else poll.fail(error);
      // The wake was not for that poll alone: the next looks too.
      this.#again(agent);
    } finally {
      agent.looking -= 1;
    }
  }

  #park(agent: Agent<Terms, Brought>, poll: Parked<Terms, Brought>): void {
    if (poll.left) poll.end();
    else agent.idle.add(poll);
  }

  #again(agent: Agent<Terms, Brought>): void {
    agent.empty = false;
    agent.wakes = Math.max(agent.wakes, 1);
  }

  #doubt(agent: Agent<Terms, Brought>): void {
    agent.empty = false;
    agent.doubts += 1;
  }

  /** Delayed tickets are promoted by whoever looks; nobody else will when one falls due. */
  #wakeAt(name: string, agent: Agent<Terms, Brought>, at: number): void {
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
    const now = performance.now();
    for (const [name, agent] of this.#agents) {
      if (agent.recheckAt > now) continue;
      if (isLeft(agent)) {
        this.#tidy(name, agent);
        continue;
      }
      agent.recheckAt = this.#nextRecheck();
      this.wake(name);
    }
  }

  #tidy(name: string, agent: Agent<Terms, Brought>): void {
    if (!isLeft(agent) || this.#agents.get(name) !== agent) return;
    // Until something is told of it, its next poll need not look: most of them come back within milliseconds.
    if (agent.empty && agent.recheckAt > performance.now()) return;
    if (agent.due) clearTimeout(agent.due.timer);
    this.#agents.delete(name);
    if (this.#agents.size > 0 || !this.#rechecks) return;
    clearInterval(this.#rechecks);
    this.#rechecks = null;
  }
}
