/**
 * What is in doubt after a lost answer of Redis: whether a ticket was made, a lease granted, a lease given back. A round
 * every half second settles what it can, so that the work does not wait for the sweep. Limit: in memory; after a crash
 * the sweep settles it.
 */
import type { TicketData, TicketOrder } from "../../queue/tickets.ts";
import { isUnavailable } from "../../redis/errors.ts";

const EVERY_MS = 500;
/** Redis may carry out a command that it received before it fell silent, after it answers again. */
const SEARCHED_FOR_MS = 5_000;

/** More than this is left to the sweep. */
const MAX_OFFERS = 10_000;
const MAX_HAND_BACKS = 10_000;
const MAX_GRANTS = 1_000;

/** A ticket, and its place in the agent's queue. */
export interface Offer {
  readonly agent: string;
  readonly data: TicketData;
  readonly order: TicketOrder;
}

/** A granted lease, as far as giving it back needs it. */
export interface LeaseRef {
  readonly delegation_id: string;
  readonly fence: number;
}

/** A lease that may have been granted. */
export interface Grant {
  readonly nonce: string;
  /** When its answer was given up, ms. */
  readonly at: number;
  /** Until when it is searched for, ms; set by the first search that Redis answers. */
  readonly until?: number;
}

export interface InDoubtOptions {
  /** Adds a ticket to its queue; the same one twice is one. */
  readonly offer: (offer: Offer) => Promise<void>;
  /** The leases that were granted with one of these nonces. */
  readonly findGrants: (agent: string, grants: readonly Grant[]) => Promise<readonly LeaseRef[]>;
  /** Resolves once the lease is known to have ended, for any reason. */
  readonly giveBack: (lease: LeaseRef) => Promise<void>;
  readonly onHandBack: () => void;
  readonly warn: (error: unknown, what: string) => void;
}

export class InDoubt {
  /** Agent → the leases that may have been granted. */
  readonly grants = new Map<string, readonly Grant[]>();
  /** Tickets that may not be in their queue. */
  readonly offers: Offer[] = [];
  /** Leases that may not have been given back; giving one back twice is harmless. */
  readonly handBacks: LeaseRef[] = [];
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

  /** Gives a lease back, now or in a later round. */
  async handBack(lease: LeaseRef): Promise<void> {
    this.#options.onHandBack();
    try {
      await this.#options.giveBack(lease);
    } catch (error) {
      const { delegation_id, fence } = lease;
      if (this.handBacks.length < MAX_HAND_BACKS) this.handBacks.push({ delegation_id, fence });
      this.#options.warn(error, "lease not handed back yet");
    }
  }

  start(): void {
    this.#timer = setInterval(() => {
      if (this.#running || this.grants.size + this.offers.length + this.handBacks.length === 0) return;
      this.#running = true;
      this.#round()
        .catch((error: unknown) => this.#options.warn(error, "recovery interrupted"))
        .finally(() => {
          this.#running = false;
        });
    }, EVERY_MS).unref();
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
  }

  /** What cannot be settled yet stays for the next round. */
  async #round(): Promise<void> {
    for (const offer of this.offers.splice(0)) await this.#offerAgain(offer);
    await this.#giveBackAgain();
    for (const [agent, grants] of [...this.grants]) {
      const searched = await this.#search(agent, grants);
      if (searched) this.searched(agent, grants);
      // Redis does not answer for other agents either, and each attempt takes its time to fail.
      else break;
    }
  }

  async #offerAgain(offer: Offer): Promise<void> {
    await this.#options.offer(offer).catch((error: unknown) => {
      this.offer(offer);
      this.#options.warn(error, "ticket not made yet");
    });
  }

  /** In order, until Redis does not answer. */
  async #giveBackAgain(): Promise<void> {
    for (let lease = this.handBacks[0]; lease !== undefined; lease = this.handBacks[0]) {
      try {
        await this.#options.giveBack(lease);
      } catch (error) {
        this.#options.warn(error, "lease not handed back yet");
        // Redis would refuse it every time: give up, and let the lease lapse.
        if (isUnavailable(error)) return;
      }
      this.handBacks.shift();
    }
  }

  /** Gives back what was granted to nobody. False when Redis did not answer. */
  async #search(agent: string, grants: readonly Grant[]): Promise<boolean> {
    try {
      for (const lease of await this.#options.findGrants(agent, grants)) await this.handBack(lease);
      return true;
    } catch (error) {
      this.#options.warn(error, "grants not found out yet");
      // Redis would refuse it every time.
      return !isUnavailable(error);
    }
  }

  /** Redis answered a search for these grants; they are searched for some time more. */
  searched(agent: string, grants: readonly Grant[]): void {
    const now = Date.now();
    const done = new Set(grants);
    // Others may have been added meanwhile.
    const left = (this.grants.get(agent) ?? []).flatMap((grant) => {
      if (!done.has(grant)) return [grant];
      const { until = now + SEARCHED_FOR_MS } = grant;
      return until > now ? [{ ...grant, until }] : [];
    });
    if (left.length > 0) this.grants.set(agent, left);
    else this.grants.delete(agent);
  }
}
