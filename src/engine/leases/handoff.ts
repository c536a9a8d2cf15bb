/**
 * The hand-off: how work reaches a poll that waits for it, and how a waiting delegator gets the outcome.
 *
 * **Match.** An agent's polls park at any gateway (`queue/parked-polls.ts`). `submit` matches new work with a poll that is
 * parked here, and one script writes the record, adds the ticket and takes it for that poll. A match that takes nothing
 * (the work is delayed, the agent is blocked, another ticket was first) leaves the poll parked.
 *
 * **Offer.** Without a match the ticket waits in the agent's queue, and polls are woken to fetch it:
 * - A ticket made by a move has an event. Every gateway receives it in its feed and wakes one of its polls, unless the
 *   feed brings the event of the ticket's lease with it. The gateway that made the ticket wakes its own poll at once
 *   (`announce`), and skips the event when the feed delivers it.
 * - A ticket without an event (`offer`: made again by the sweep or by a retry) is announced by a broadcast.
 * - A ticket that is kept for one worker (`keepFor`) is announced by a broadcast with its id. Each gateway wakes a poll of
 *   this worker, or remembers that its next poll must fetch. Other polls find the ticket when it is no longer kept.
 * - When there may be any number of tickets (an agent was resumed, a lease ended, wakes were lost), `wake` starts a
 *   drain: polls fetch until a fetch finds nothing.
 * Each wake is only a hint. A lost one costs time, never work: parked polls fetch now and then anyway.
 *
 * **In doubt.** When Redis does not answer, a ticket may or may not be in the queue, a lease may or may not be granted or
 * returned. `InDoubt` keeps these cases and resolves them once Redis answers; a lease that no poll received is returned.
 *
 * **Local waiters.** A delegator that waits at this gateway gets the record from the answer to the move itself, which is
 * earlier than its event; moves made by other gateways reach it through the feed (`local-waiters.ts`).
 */
import type { Entry } from "../../events/entry.ts";
import type { Feed } from "../../events/feed.ts";
import type { Clock, Command, Taker } from "../../lifecycle/command.ts";
import type { Moved, Result } from "../../lifecycle/outcome.ts";
import { MOVES, type Move } from "../../lifecycle/states.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { Writer } from "../../lifecycle/writer.ts";
import type { Fetched } from "../../queue/parked-poll.ts";
import { type Match, ParkedPolls, type ParkedPollsOptions } from "../../queue/parked-polls.ts";
import type { Tickets } from "../../queue/tickets.ts";
import { isOutOfMemory } from "../../redis/errors.ts";
import { randomId, type Shards } from "../../redis/shards.ts";
import type { LeaseRequest } from "../../schema/lease.ts";
import { BoundedSet } from "../../util/bounded.ts";
import { ownText } from "../../util/own-text.ts";
import { InDoubt, type InDoubtOptions, type Offer } from "./in-doubt.ts";
import { LocalWaiters, type Until, type Waiter, type WaitOptions } from "./local-waiters.ts";
import type { WakeMessage } from "./wake-message.ts";

export interface HandoffOptions
  extends Pick<InDoubtOptions, "findGrants" | "returnLease" | "onReturn" | "warn"> {
  readonly shards: Shards;
  readonly writer: Pick<Writer, "move" | "take" | "underWay">;
  readonly tickets: Pick<Tickets, "add">;
  readonly feed: Pick<Feed, "subscribe" | "hasDelivered" | "mayHaveDelivered">;
  /** Wakes the polls of the agent at the other gateways. */
  readonly broadcast: (agent: string, how: WakeHow) => Promise<unknown>;
  /** Starts work for agents that do not poll. */
  readonly pushAgents: { wake(agent: string): void; recheckAll(): void };
  readonly isBlocked: (agent: string) => Promise<boolean>;
  readonly clock: Clock;
  readonly polls: ParkedPollsOptions;
}

/** `drain`: there may be several tickets. `worker`: the ticket is kept for this worker. */
export type WakeHow = Pick<WakeMessage, "drain" | "worker">;

/** The agent of a poll, and its request. */
export interface PollTerms {
  readonly agent: string;
  readonly request: LeaseRequest;
}

/** A granted lease as the script returned it. */
export interface Granted {
  readonly record: StoredDelegation;
  readonly outcome: Moved;
}

/** Limit of remembered events and submits; dropping one costs a needless fetch. */
const MAX_REMEMBERED = 10_000;
/** The same for leases, which matter only while a fetch is in flight. */
const MAX_FETCHED = 1_000;

const SENT = "DELEGATION_SENT";
const moves: readonly Move[] = Object.values(MOVES);
/** The statuses of events whose move has this effect on the queue, besides the submit's. */
const statusesOf = (effect: Move["queue"]): ReadonlySet<string> =>
  new Set(moves.flatMap(({ queue, status }) => (queue === effect && status !== undefined ? [status] : [])));
const TICKET_STATUSES = statusesOf("ticket");
const LEASE_STATUSES = statusesOf("consume_ticket");
const hasTicket = (entry: Entry): boolean => entry.type === SENT || TICKET_STATUSES.has(entry.status);

const ms = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : Math.round(seconds * 1000);

const workerOf = ({ agent, request }: PollTerms): string => request.worker_id ?? agent;
/** No name of an agent has a space. */
const keptKey = (agent: string, worker: string): string => `${agent} ${worker}`;

/** The nonce identifies the lease when the answer that grants it is lost. */
const takerOf = (terms: PollTerms): Taker => ({
  agent: terms.agent,
  nonce: randomId(16),
  worker_id: workerOf(terms),
  lease_ms: ms(terms.request.lease_seconds),
  confirm_ms: ms(terms.request.confirm_within_seconds),
});

/** Two shards may write events with the same id. */
const eventKey = ({ shard, id }: Pick<Entry, "shard" | "id">): string => `${shard} ${id}`;

/** Whether the command's work still waits: nothing was taken, or an older ticket. */
const isLeft = (taken: Result | null | undefined, { id }: Command): boolean =>
  !taken || (taken.outcome.kind === "ok" && taken.outcome.id !== id);

export class Handoff {
  readonly polls: ParkedPolls<PollTerms, Result>;
  readonly inDoubt: InDoubt;
  readonly #options: HandoffOptions;
  readonly #waiters: LocalWaiters;
  /** Events of tickets that this gateway announced before the feed delivered them, as {@link eventKey} names them. */
  readonly #announced = new BoundedSet<string>(MAX_REMEMBERED);
  /** Delegations that are being submitted with a match: `#receive` wakes no poll for them, and deletes them here. */
  readonly #matched = new BoundedSet<string>(MAX_REMEMBERED);
  /** Delegation id → its target: tickets that the feed has just delivered, and that may not be leased yet. */
  readonly #offered = new Map<string, string>();
  /** Delegations whose tickets woke no poll here, because the feed brought the lease with the ticket. */
  readonly #unwoken = new BoundedSet<string>(MAX_FETCHED);
  /** Workers for which a ticket may be kept, as {@link keptKey} names them; their next poll fetches. */
  readonly #kept = new BoundedSet<string>(MAX_FETCHED);
  /** Delegations that a fetch of this gateway leased, until the feed delivers the lease. */
  readonly #fetched = new BoundedSet<string>(MAX_FETCHED);

  constructor(options: HandoffOptions) {
    this.#options = options;
    this.polls = new ParkedPolls({ ...options.polls, onBlocked: (agent) => this.#wakeIfUnblocked(agent) });
    this.#waiters = new LocalWaiters(options);
    this.inDoubt = new InDoubt({ ...options, offer: (offer) => this.#add(offer, true) });
  }

  start(): void {
    this.#options.feed.subscribe(
      { kind: "all" },
      { push: (entry) => this.#receive(entry), gap: () => this.wakeAllHere() },
    );
    this.inDoubt.start();
  }

  stop(): void {
    this.inDoubt.stop();
  }

  /** Makes the move that gives the agent its ticket. A parked poll, if there is one, takes it in the same script. */
  async submit(agent: string, command: Command): Promise<Result> {
    const match = this.polls.match(agent);
    const moving = match ? this.#submitFor(match, command) : this.#options.writer.move(command);
    const result = await moving;
    const { outcome, taken } = result;
    if (outcome.kind === "ok" && outcome.ticketed && isLeft(taken, command)) {
      this.announce(agent, outcome.event_id);
    }
    return result;
  }

  #submitFor({ terms, settle }: Match<PollTerms, Result>, command: Command): Promise<Result> {
    const taker = takerOf(terms);
    this.#matched.add(command.id);
    const moving = this.#options.writer.move(command, taker);
    const taking = moving.then(
      ({ outcome, taken }) => {
        // A ticket is ready, and its take failed: perhaps after the lease was written.
        if (!taken && outcome.kind === "ok" && (outcome.ready_at ?? 0) <= outcome.now) {
          this.inDoubt.grant(taker.agent, taker.nonce);
        }
        return taken ?? null;
      },
      (error: unknown) => {
        // A script that Redis refuses for lack of memory has done nothing.
        if (!isOutOfMemory(error)) this.inDoubt.grant(taker.agent, taker.nonce);
        return null;
      },
    );
    settle(
      taking.then((taken) => {
        // The work is left. If `#receive` has skipped its event because of this match, no poll was woken for it yet.
        if (isLeft(taken, command) && !this.#matched.delete(command.id)) this.wakeHere(taker.agent, false);
        return taken;
      }),
    );
    return moving;
  }

  /** Takes tickets until one is granted or there is none left; stale tickets are consumed on the way. */
  async fetch(terms: PollTerms, first?: Result): Promise<Fetched<Granted>> {
    for (let result = first; ; result = undefined) {
      const { outcome, record } = result ?? (await this.#take(takerOf(terms)));
      if (!result && outcome.kind === "ok") this.#replaceWake(terms.agent, outcome.id);
      if (outcome.kind === "empty") {
        const { next_due_at, now } = outcome;
        if (next_due_at === undefined) return { found: null };
        // Redis' clock says when it is due, ours when to fetch; they may differ.
        const left = next_due_at - (now - this.#options.clock.offset_ms);
        return { found: null, next_due_at: Date.now() + left };
      }
      if (outcome.kind === "blocked") return { found: null, blocked: true };
      if (outcome.kind === "ok" && record) return { found: { record, outcome } };
    }
  }

  /**
   * Call it with each delegation that a fetch leased. The fetch may have been for another ticket, which still waits: then
   * the wake that was left out for this one is needed.
   */
  #replaceWake(agent: string, id = ""): void {
    if (this.#unwoken.delete(id)) this.wakeHere(agent, false);
    else this.#fetched.add(id);
  }

  #take(taker: Taker): Promise<Result> {
    return this.#options.writer.take(taker).catch((error: unknown) => {
      this.inDoubt.grant(taker.agent, taker.nonce);
      throw error;
    });
  }

  /** Wakes the agent's polls unless it is still blocked: if it was unblocked before they parked, nothing else does. */
  #wakeIfUnblocked(agent: string): void {
    this.#options.isBlocked(agent).then(
      (isBlocked) => isBlocked || this.wake(agent),
      (error: unknown) =>
        this.#options.warn(error, "agent not read; its blocked polls wait for the next wake"),
    );
  }

  /**
   * Puts a ticket into the agent's queue, and retries while Redis does not answer. A ticket added twice is one ticket.
   */
  async offer(offer: Offer): Promise<void> {
    try {
      // One fetch is enough: it takes the ticket, or finds out when it is due.
      await this.#add(offer, false);
    } catch (error) {
      this.inDoubt.offer(offer);
      this.#options.warn(error, "ticket not added yet");
    }
  }

  async #add({ agent, data, order }: Offer, drain: boolean): Promise<void> {
    await this.#options.tickets.add(agent, data, order);
    this.wake(agent, drain);
  }

  /** Wakes a poll for a ticket that this gateway made; `event_id`: the event of its move, if it has one. */
  announce(agent: string, event_id: string | undefined): void {
    const { feed, shards } = this.#options;
    if (event_id === undefined) {
      this.wake(agent, false);
      return;
    }
    const shard = shards.indexOfAgent(agent);
    // The feed delivered the event before the script's answer came, and has woken a poll.
    if (feed.hasDelivered(shard, event_id)) return;
    this.#announced.add(eventKey({ shard, id: event_id }));
    this.wakeHere(agent, false);
  }

  /** Called for each event that the feed delivers. */
  #receive(entry: Entry): void {
    const { delegation_id, target } = entry;
    if (LEASE_STATUSES.has(entry.status)) {
      const isOurs = this.#fetched.delete(delegation_id);
      if (!isOurs && this.#offered.delete(delegation_id)) this.#unwoken.add(ownText(delegation_id));
    }
    if (!hasTicket(entry) || this.#announced.delete(eventKey(entry))) return;
    if (entry.type === SENT && this.#matched.delete(delegation_id)) return;
    // The feed delivers what one read returned without a pause. A match at another gateway writes both events at once.
    if (this.#offered.size === 0) queueMicrotask(() => this.#wakeForOffered());
    this.#offered.set(delegation_id, target);
  }

  #wakeForOffered(): void {
    const targets = [...this.#offered.values()];
    this.#offered.clear();
    for (const target of targets) this.wakeHere(target, false);
  }

  /** Call it when a ticket is kept for a worker: it is woken at whichever gateway it polls. */
  keepFor(agent: string, worker: string): void {
    this.keepForHere(agent, worker);
    this.#broadcast(agent, { worker });
  }

  keepForHere(agent: string, worker: string): void {
    if (!this.polls.wakeOne(agent, (terms) => workerOf(terms) === worker))
      this.#kept.add(keptKey(agent, ownText(worker)));
  }

  /** Whether a poll of these terms must fetch before it parks, because a ticket may be kept for its worker. */
  takeKept(terms: PollTerms): boolean {
    return this.#kept.size > 0 && this.#kept.delete(keptKey(terms.agent, workerOf(terms)));
  }

  /** Wakes the agent's polls at all gateways: one each for one ticket, or (`drain`) as long as there are tickets. */
  wake(agent: string, drain = true): void {
    this.wakeHere(agent, drain);
    this.#broadcast(agent, { drain });
  }

  #broadcast(agent: string, how: WakeHow): void {
    this.#options.broadcast(agent, how).catch((error: unknown) => this.#options.warn(error, "wake not sent"));
  }

  wakeHere(agent: string, drain: boolean): void {
    this.polls.wake(agent, drain);
    this.#options.pushAgents.wake(agent);
  }

  /** Call it when wakes may have been missed. */
  wakeAllHere(): void {
    this.polls.wakeAll();
    this.#options.pushAgents.recheckAll();
  }

  /** Call it with each record that a move of this gateway returned. */
  moved(record: StoredDelegation): void {
    this.#waiters.notify(record);
  }

  /** Waits here for a change of a delegation; the caller must stop the waiter. */
  waitFor(id: string, options: WaitOptions, until: Until): Waiter {
    return this.#waiters.add(id, options, until);
  }
}
