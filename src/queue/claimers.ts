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

interface Agent {
  readonly idle: Set<Parked>;
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

export interface Claim<T> {
  readonly signal: AbortSignal;
  readonly look: () => Promise<Look<T>>;
  /** Without it there is only the signal. */
  readonly wait_ms?: number;
  /** Waits for a wake without looking: the queue was just seen to be held. */
  readonly park?: boolean;
}

type Parked = Pick<Poll<unknown>, "left" | "look" | "end" | "fail">;

interface PollOptions<T> {
  readonly signal: AbortSignal;
  readonly look: () => Promise<Look<T>>;
  readonly wait_ms: number | undefined;
  readonly leave: () => void;
  readonly resolve: (found: T | null) => void;
  readonly reject: (error: unknown) => void;
}

/** One parked poll. (A class: there may be thousands, and closures take more.) */
class Poll<T> {
  readonly #options: PollOptions<T>;
  readonly #timer: NodeJS.Timeout | undefined;
  /** Its caller waits no longer. */
  left = false;

  constructor(options: PollOptions<T>) {
    this.#options = options;
    const { wait_ms, signal } = options;
    this.#timer = wait_ms === undefined ? undefined : setTimeout(() => this.handleEvent(), wait_ms);
    signal.addEventListener("abort", this);
  }

  /** The time is up, or the signal aborted. */
  handleEvent(): void {
    this.left = true;
    this.#options.leave();
  }

  /** Ends it when something is found. */
  async look(): Promise<Look<true>> {
    const seen = await this.#options.look();
    if (seen.found === null) return { ...seen, found: null };
    this.#over();
    this.#options.resolve(seen.found);
    return { ...seen, found: true };
  }

  end(): void {
    this.#over();
    this.#options.resolve(null);
  }

  fail(error: unknown): void {
    this.#over();
    this.#options.reject(error);
  }

  #over(): void {
    clearTimeout(this.#timer);
    this.#options.signal.removeEventListener("abort", this);
  }
}

export interface ClaimersOptions {
  /** A look failed; whether it took something is not known. */
  readonly onError: (error: unknown, agent: string) => void;
  /** How long a parked poll took from its wake to what it found, ms. */
  readonly onWoken?: (ms: number) => void;
  /** Net under the wakes: agents with parked polls are looked for this often, jittered. */
  readonly recheckMs?: number;
}

/** No timer of Node runs longer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class Claimers {
  readonly #agents = new Map<string, Agent>();
  readonly #options: ClaimersOptions;
  readonly #recheckMs: number;
  #rechecks: NodeJS.Timeout | null = null;

  constructor(options: ClaimersOptions) {
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
  agents(): IterableIterator<string> {
    return this.#agents.keys();
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
  claim<T>(name: string, { signal, look, wait_ms, park = false }: Claim<T>): Promise<T | null> {
    if (signal.aborted) return Promise.resolve(null);
    const agent = this.#agent(name);
    return new Promise((resolve, reject) => {
      const leave = () => {
        // One that looks is ended when its look is.
        if (!agent.idle.delete(poll)) return;
        poll.end();
        this.#tidy(name, agent);
      };
      const poll = new Poll({ signal, wait_ms, look, leave, resolve, reject });
      // Parked before the look: a ticket that comes in between finds it.
      agent.idle.add(poll);
      // For itself: what else may wait is the others' to hear of. Where they found nothing, it would not either.
      if (agent.empty) this.#pump(name, agent);
      else if (!park) this.wake(name, false);
    });
  }

  #agent(name: string): Agent {
    let agent = this.#agents.get(name);
    if (!agent) {
      agent = {
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

  #pump(name: string, agent: Agent): void {
    for (const poll of agent.idle) {
      if (agent.wakes === 0) return;
      agent.wakes -= 1;
      agent.looking += 1;
      agent.idle.delete(poll);
      void this.#look(name, agent, poll).finally(() => {
        this.#pump(name, agent);
        this.#tidy(name, agent);
      });
    }
  }

  async #look(name: string, agent: Agent, poll: Parked): Promise<void> {
    const { wokenAt, doubts } = agent;
    agent.wokenAt = 0;
    try {
      const { found, next_due_at, held = false } = await poll.look();
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
      if (poll.left) poll.end();
      else agent.idle.add(poll);
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

  #again(agent: Agent): void {
    agent.empty = false;
    agent.wakes = Math.max(agent.wakes, 1);
  }

  #doubt(agent: Agent): void {
    agent.empty = false;
    agent.doubts += 1;
  }

  /** Delayed tickets are promoted by whoever looks; nobody else will when one falls due. */
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

  #nextRecheck(): number {
    return performance.now() + this.#recheckMs * (0.75 + Math.random() / 2);
  }

  #recheck(): void {
    const now = performance.now();
    for (const [name, agent] of this.#agents) {
      if (agent.recheckAt > now) continue;
      agent.recheckAt = this.#nextRecheck();
      this.wake(name);
    }
  }

  #tidy(name: string, agent: Agent): void {
    if (agent.idle.size > 0 || agent.looking > 0 || this.#agents.get(name) !== agent) return;
    if (agent.due) clearTimeout(agent.due.timer);
    this.#agents.delete(name);
    if (this.#agents.size > 0 || !this.#rechecks) return;
    clearInterval(this.#rechecks);
    this.#rechecks = null;
  }
}
