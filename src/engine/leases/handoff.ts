/**
 * The hand-off: how work reaches a parked poll, and how a waiting delegator gets the outcome. Every wake is a call of
 * `ParkedPolls.wake` or `wakeOne`; here is who calls them. A woken poll fetches: one script takes the first ticket and
 * leases its delegation.
 *
 * **New tickets.** The event of a new ticket is the wake. Every gateway reads it in its feed and wakes one parked poll of
 * the agent, if it has one (`#receive`). The gateway that made the ticket has nothing to send, so it may die:
 *
 *     gateway A   submit → the script adds the event 1785405600123-0 {e: "DELEGATION_SENT…"} and the ticket dlg_0_7f3.1
 *     A and B     the feed delivers 1785405600123-0, each wakes a poll
 *     B           its poll fetches first, and gets the lease of dlg_0_7f3
 *     A           its poll fetches, finds the queue empty, and parks again
 *
 * **Match.** If a poll is parked where work is submitted, the same script also takes the first ticket for it. If that is
 * the new one, its event has the field `m` (`Entry.matched`), which wakes nobody:
 *
 *     gateway A   submit → the script adds 1785405600124-0 {e: "DELEGATION_SENT…", m: ""} and 1785405600124-1
 *                 {e: "DELEGATION_STATUS… leased"}, and answers the submit and the poll
 *
 * If the new ticket is not the first, its event has no `m` and wakes polls, while the matched poll gets the first one. If
 * the agent is blocked, the poll stays parked, and the end of the block wakes the polls.
 *
 * **Kept.** The event of a ticket that is kept for one worker has the field `k` (`Entry.kept_for`). Each gateway wakes a
 * poll of this worker, or remembers that its next poll must fetch. Other polls find the ticket when it is no longer kept:
 *
 *     gateway A   answer → the script adds 1785405600125-0 {e: "DELEGATION_STATUS… answered", k: "laptop-7"}
 *
 * **Ends of leases.** An agent that works on as many delegations as it may is blocked. The event of a lease's end wakes its
 * polls at each gateway that found it so:
 *
 *     gateway A   reply → the script adds 1785405600126-0 {e: "DELEGATION_COMPLETE…"}
 *     gateway B   had found scout at its limit: its polls fetch until one finds nothing
 *
 * **Other wakes** are broadcasts:
 * - A ticket or an end without an event (`offer`: added again by the sweep or by a retry).
 * - Any number of tickets (`wake` with `drain`: an agent was resumed, or its limits changed): polls fetch until one finds
 *   nothing.
 * A wake is only a hint. A lost one costs time, never work: parked polls fetch now and then anyway.
 *
 * **In doubt.** When Redis does not answer, a ticket, a lease or a return may or may not exist: see in-doubt.ts.
 *
 * **Local waiters.** A delegator that waits at this gateway gets the record from the answer to the move itself, which is
 * earlier than its event; moves made by other gateways reach it through the feed (local-waiters.ts).
 */
import type { Entry } from "../../events/entry.ts";
import type { Feed } from "../../events/feed.ts";
import type { Clock, Command, Taker } from "../../lifecycle/command.ts";
import type { Moved, Result } from "../../lifecycle/outcome.ts";
import { MOVES, type Move } from "../../lifecycle/states.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { Writer } from "../../lifecycle/writer.ts";
import type { Tickets } from "../../queue/tickets.ts";
import { isOutOfMemory } from "../../redis/errors.ts";
import { randomId, type Shards } from "../../redis/shards.ts";
import { TERMINAL_EVENT_TYPES } from "../../schema/event.ts";
import type { LeaseRequest } from "../../schema/lease.ts";
import { BoundedSet } from "../../util/bounded.ts";
import { ownText } from "../../util/text.ts";
import { InDoubt, type InDoubtOptions, type Offer } from "./in-doubt.ts";
import { LocalWaiters, type Until, type Waiter, type WaitOptions } from "./local-waiters.ts";
import type { Fetched } from "./parked-poll.ts";
import { type Match, ParkedPolls, type ParkedPollsOptions } from "./parked-polls.ts";
import type { AgentWake } from "./wake-message.ts";

export interface HandoffOptions
  extends Pick<InDoubtOptions, "findGrants" | "returnLease" | "onReturn" | "warn"> {
  readonly shards: Shards;
  readonly writer: Pick<Writer, "move" | "take" | "underWay" | "onMoved">;
  readonly tickets: Pick<Tickets, "add">;
  readonly feed: Pick<Feed, "subscribe" | "mayHaveDelivered">;
  /** Wakes the polls of the agent at the other gateways. */
  readonly broadcast: (wake: AgentWake) => Promise<unknown>;
  /** Starts work for agents that do not poll. */
  readonly pushAgents: { wake(agent: string): void; recheckAll(): void };
  readonly clock: Clock;
  readonly polls: ParkedPollsOptions;
}

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

/** Limit of workers that are remembered; dropping one costs time. */
const MAX_KEPT = 1_000;

const SENT = "DELEGATION_SENT";
const moves: readonly Move[] = Object.values(MOVES);
/** The statuses of events whose move makes a ticket, besides the submit's. */
const TICKET_STATUSES: ReadonlySet<string> = new Set(
  moves.flatMap(({ queue, status }) => (queue === "ticket" && status !== undefined ? [status] : [])),
);
const hasTicket = (entry: Entry): boolean => entry.type === SENT || TICKET_STATUSES.has(entry.status);
/** The statuses of events whose move ends a lease, besides those of the delegation's end. */
const LEASE_END_STATUSES: ReadonlySet<string> = new Set(
  moves.flatMap(({ lease, status }) => (lease === "drop" && status !== undefined ? [status] : [])),
);
const endsLease = (entry: Entry): boolean =>
  TERMINAL_EVENT_TYPES.includes(entry.type) || LEASE_END_STATUSES.has(entry.status);

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

export class Handoff {
  readonly polls: ParkedPolls<PollTerms, Result>;
  readonly inDoubt: InDoubt;
  readonly #options: HandoffOptions;
  readonly #waiters: LocalWaiters;
  /** Workers for which a ticket may be kept, as {@link keptKey} names them; their next poll fetches. */
  readonly #kept = new BoundedSet<string>(MAX_KEPT);

  constructor(options: HandoffOptions) {
    this.#options = options;
    this.polls = new ParkedPolls(options.polls);
    this.#waiters = new LocalWaiters(options);
    this.inDoubt = new InDoubt({ ...options, offer: (offer) => this.#add(offer, true) });
  }

  start(): void {
    const { feed, writer } = this.#options;
    feed.subscribe({ kind: "all" }, { push: (entry) => this.#receive(entry), gap: () => this.wakeAllHere() });
    writer.onMoved((record) => this.#waiters.notify(record));
    this.inDoubt.start();
  }

  stop(): void {
    this.inDoubt.stop();
  }

  /** Called for each event that the feed delivers: the event of a ticket wakes a poll at every gateway. */
  #receive(entry: Entry): void {
    if (entry.kept_for !== undefined) this.keepForHere(entry.target, entry.kept_for);
    if (hasTicket(entry) && !entry.matched) this.wakeHere(entry.target, false);
    if (endsLease(entry)) this.polls.wakeBlocked(entry.target);
  }

  /** Makes the move that gives the agent its ticket. A parked poll, if there is one, takes it in the same script. */
  async submit(agent: string, command: Command): Promise<Result> {
    const match = this.polls.match(agent);
    const result = await (match ? this.#submitFor(match, command) : this.#options.writer.move(command));
    const { outcome } = result;
    if (outcome.kind === "ok" && outcome.ticketed)
      this.wakeUnlessPublished(agent, outcome.event_id, outcome.kept_for);
    return result;
  }

  #submitFor({ terms, settle }: Match<PollTerms, Result>, command: Command): Promise<Result> {
    const taker = takerOf(terms);
    const moving = this.#options.writer.move(command, taker);
    settle(
      moving.then(
        ({ outcome, taken }) => {
          const isReady = outcome.kind === "ok" && !outcome.behind && (outcome.ready_at ?? 0) <= outcome.now;
          // A ticket is ready, and its take failed: perhaps after the lease was written.
          if (!taken && isReady) {
            this.inDoubt.grant(taker.agent, taker.nonce);
          }
          return taken ?? null;
        },
        (error: unknown) => {
          // A script that Redis refuses for lack of memory has done nothing.
          if (!isOutOfMemory(error)) this.inDoubt.grant(taker.agent, taker.nonce);
          return null;
        },
      ),
    );
    return moving;
  }

  /**
   * Takes tickets until one is granted or there is none left; stale tickets are consumed on the way. `taken`: what a match
   * took first.
   */
  async fetch(terms: PollTerms, taken?: Result): Promise<Fetched<Granted>> {
    for (let result = taken; ; result = undefined) {
      const { outcome, record } = result ?? (await this.#take(takerOf(terms)));
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

  #take(taker: Taker): Promise<Result> {
    return this.#options.writer.take(taker).catch((error: unknown) => {
      this.inDoubt.grant(taker.agent, taker.nonce);
      throw error;
    });
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
    this.wakeEverywhere(agent, drain);
  }

  /**
   * Call it when a move made a ticket, perhaps kept for a worker. Its event wakes the polls; if it could not be published,
   * a broadcast does.
   */
  wakeUnlessPublished(agent: string, event_id: string | undefined, keptFor?: string): void {
    if (event_id !== undefined) return;
    if (keptFor !== undefined) {
      this.keepForHere(agent, keptFor);
      this.#broadcast({ kind: "kept_ticket", agent, worker: keptFor });
    }
    this.wakeEverywhere(agent, false);
  }

  /** A ticket is kept for a worker: wakes its poll, or remembers that its next poll must fetch. */
  keepForHere(agent: string, worker: string): void {
    if (!this.polls.wakeOne(agent, (terms) => workerOf(terms) === worker))
      this.#kept.add(keptKey(agent, ownText(worker)));
  }

  /** Whether a poll of these terms must fetch before it parks, because a ticket may be kept for its worker. */
  takeKept(terms: PollTerms): boolean {
    return this.#kept.size > 0 && this.#kept.delete(keptKey(terms.agent, workerOf(terms)));
  }

  /** Wakes the agent's polls at all gateways: one each for one ticket, or (`drain`) as long as there are tickets. */
  wakeEverywhere(agent: string, drain = true): void {
    this.wakeHere(agent, drain);
    this.#broadcast({ kind: "ticket", agent, drain });
  }

  #broadcast(wake: AgentWake): void {
    this.#options.broadcast(wake).catch((error: unknown) => this.#options.warn(error, "wake not sent"));
  }

  /** The same, at this gateway alone. */
  wakeHere(agent: string, drain: boolean): void {
    this.polls.wake(agent, drain);
    this.#options.pushAgents.wake(agent);
  }

  /** Call it when wakes may have been missed. */
  wakeAllHere(): void {
    this.polls.wakeAll();
    this.#options.pushAgents.recheckAll();
  }

  /** Waits here for a change of a delegation; the caller must stop the waiter. */
  waitFor(id: string, options: WaitOptions, until: Until): Waiter {
    return this.#waiters.add(id, options, until);
  }
}
