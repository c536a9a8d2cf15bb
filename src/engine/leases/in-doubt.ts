/**
 * Resolves what is in doubt after a lost answer of Redis: a ticket that may be missing, a lease that may have been
 * granted, a lease that may not have been returned. A lost answer of a fetch:
 *
 *     0.0 s   a poll of scout fetches with the nonce "h3Kx…"; the script leases dlg_0_7f3, and the connection breaks
 *     2.0 s   the command times out: the poll fails, and `grants` has scout → [{nonce: "h3Kx…", at: 2.0 s}]
 *     2.5 s   Redis is still away; the round ends at its first error
 *     3.0 s   Redis answers: dlg_0_7f3 is leased with this nonce (find-grants.ts), and no poll received the lease. It is
 *             returned: the event "released" wakes a poll, and no attempt is spent
 *     8.0 s   the nonce is dropped: until now Redis could still execute the fetch, if it came late
 *
 * A round comes every half second, so that work does not wait for the sweep. Limit: in memory. If the gateway dies, the
 * sweep adds missing tickets, and leases expire.
 */
import type { TicketData, TicketOrder } from "../../queue/tickets.ts";
import { isUnavailable } from "../../redis/errors.ts";
import type { Shards } from "../../redis/shards.ts";

const EVERY_MS = 500;
/** How long a search continues: after an outage, Redis may still execute a command that it received before. */
const SEARCHED_FOR_MS = 5_000;

/** The sweep resolves the cases beyond these limits. */
const MAX_OFFERS = 10_000;
const MAX_RETURNS = 10_000;
const MAX_GRANTS = 1_000;

/** A ticket, and its place in the agent's queue. */
export interface Offer {
  readonly agent: string;
  readonly data: TicketData;
  readonly order: TicketOrder;
}

/** Identifies a granted lease. */
export interface LeaseRef {
  readonly delegation_id: string;
  readonly fence: number;
}

/** A lease that may have been granted. */
export interface Grant {
  readonly nonce: string;
  /** When the gateway stopped waiting for the answer, ms. */
  readonly at: number;
  /** The time, ms, at which the search for it ends; set by the first search that Redis answers. */
  readonly until?: number;
}

export interface InDoubtOptions {
  readonly shards: Pick<Shards, "all" | "indexOfAgent" | "indexOfId">;
  /** Adds a ticket to its queue; a ticket added twice is one ticket. */
  readonly offer: (offer: Offer) => Promise<void>;
  /** The leases that were granted with one of these nonces. */
  readonly findGrants: (agent: string, grants: readonly Grant[]) => Promise<readonly LeaseRef[]>;
  /** Resolves once the lease is known to have ended, for any reason. */
  readonly returnLease: (lease: LeaseRef) => Promise<void>;
  readonly onReturn: () => void;
  readonly warn: (error: unknown, what: string) => void;
}

export class InDoubt {
  /** By agent, the leases that may have been granted. */
  readonly grants = new Map<string, readonly Grant[]>();
  /** Tickets that may not be in their queue. */
  readonly offers: Offer[] = [];
  /** Leases that may not have been returned; returning one twice is harmless. */
  readonly returns: LeaseRef[] = [];
  readonly #options: InDoubtOptions;
  #timer: NodeJS.Timeout | null = null;
  #running = false;

  constructor(options: InDoubtOptions) {
    this.#options = options;
  }

  offer(offer: Offer): void {
    if (this.offers.length < MAX_OFFERS) this.offers.push(offer);
  }

  grant(agent: string, nonce: string): void {
    const known = this.grants.get(agent) ?? [];
    if (known.length < MAX_GRANTS) this.grants.set(agent, [...known, { nonce, at: Date.now() }]);
  }

  /** Returns a lease to the queue, now or in a later round. */
  async returnLease(lease: LeaseRef): Promise<void> {
    this.#options.onReturn();
    try {
      await this.#options.returnLease(lease);
    } catch (error) {
      const { delegation_id, fence } = lease;
      if (this.returns.length < MAX_RETURNS) this.returns.push({ delegation_id, fence });
      this.#options.warn(error, "lease not returned yet");
    }
  }

  start(): void {
    this.#timer = setInterval(() => {
      if (this.#running || this.grants.size + this.offers.length + this.returns.length === 0) return;
      this.#running = true;
      this.#round()
        .catch((error: unknown) => this.#options.warn(error, "cases in doubt not resolved yet"))
        .finally(() => {
          this.#running = false;
        });
    }, EVERY_MS).unref();
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
  }

  /**
   * Cases that cannot be resolved yet stay for the next round. When one case gets no answer, the round skips the rest of
   * its shard, because each attempt takes up to the command's timeout. Other shards may have other masters.
   */
  async #round(): Promise<void> {
    const { shards } = this.#options;
    const offers = shards.all.map((): Offer[] => []);
    for (const offer of this.offers.splice(0)) offers[shards.indexOfAgent(offer.agent)]?.push(offer);
    await Promise.all(shards.all.map((_, shard) => this.#roundOf(shard, offers[shard] ?? [])));
  }

  async #roundOf(shard: number, offers: readonly Offer[]): Promise<void> {
    if (!(await this.#offerAgain(offers)) || !(await this.#returnAgain(shard))) return;
    for (const [agent, grants] of [...this.grants]) {
      if (this.#options.shards.indexOfAgent(agent) !== shard) continue;
      if (!(await this.#search(agent, grants))) return;
      this.searched(agent, grants);
    }
  }

  /** False when Redis did not answer; so are the next two. */
  async #offerAgain(offers: readonly Offer[]): Promise<boolean> {
    for (const [at, offer] of offers.entries()) {
      try {
        await this.#options.offer(offer);
      } catch (error) {
        this.#options.warn(error, "ticket not added yet");
        const isAway = isUnavailable(error);
        for (const one of isAway ? offers.slice(at) : [offer]) this.offer(one);
        if (isAway) return false;
      }
    }
    return true;
  }

  async #returnAgain(shard: number): Promise<boolean> {
    const isHere = ({ delegation_id }: LeaseRef) =>
      (this.#options.shards.indexOfId(delegation_id) ?? 0) === shard;
    for (let lease = this.returns.find(isHere); lease !== undefined; lease = this.returns.find(isHere)) {
      try {
        await this.#options.returnLease(lease);
      } catch (error) {
        this.#options.warn(error, "lease not returned yet");
        // Any other error would come every time: give up, and let the lease expire.
        if (isUnavailable(error)) return false;
      }
      this.returns.splice(this.returns.indexOf(lease), 1);
    }
    return true;
  }

  /** Finds the leases that no poll received, and returns them to the queue. */
  async #search(agent: string, grants: readonly Grant[]): Promise<boolean> {
    try {
      for (const lease of await this.#options.findGrants(agent, grants)) await this.returnLease(lease);
      return true;
    } catch (error) {
      this.#options.warn(error, "leases in doubt not searched yet");
      // Only an outage ends by itself; any other error would recur, so the search is not repeated.
      return !isUnavailable(error);
    }
  }

  /** Call it when Redis answered a search for these grants. Each is dropped {@link SEARCHED_FOR_MS} later. */
  searched(agent: string, grants: readonly Grant[]): void {
    const now = Date.now();
    const done = new Set(grants);
    // New grants in doubt may have been added during the search.
    const left = (this.grants.get(agent) ?? []).flatMap((grant) => {
      if (!done.has(grant)) return [grant];
      const { until = now + SEARCHED_FOR_MS } = grant;
      return until > now ? [{ ...grant, until }] : [];
    });
    if (left.length > 0) this.grants.set(agent, left);
    else this.grants.delete(agent);
  }
}
