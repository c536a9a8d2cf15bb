/**
 * What was under way when Redis fell silent: a ticket to be made, a lease to be granted or handed back, and the answer
 * never came. Limit: in memory; what a dying process leaves is the sweep's.
 */
import type { TicketData, TicketOrder } from "../../queue/tickets.ts";

/** A command that Redis had when it fell silent may be carried out after it speaks again. */
const LOOKED_FOR_MS = 5_000;

export interface Grant {
  readonly nonce: string;
  /** When its answer was given up, ms. */
  readonly at: number;
  /** Until when it is looked for, ms; from the first look on that Redis answered. */
  readonly until?: number;
}

/** A granted lease, as far as giving it back needs it. */
export interface LeaseRef {
  readonly delegation_id: string;
  readonly fence: number;
}

interface Offer {
  readonly agent: string;
  readonly data: TicketData;
  readonly order: TicketOrder;
}

/** More than this is left to the sweep. */
const MAX_OFFERS = 10_000;
const MAX_HAND_BACKS = 10_000;
const MAX_GRANTS = 1_000;

/** What could not be found out. */
export class Unheard {
  /** Agent → the leases of which it is not known whether they were granted. */
  readonly grants = new Map<string, readonly Grant[]>();
  /** Tickets of which it is not known whether the queue has them; twice is once. */
  readonly offers: Offer[] = [];

  /** Leases that may not have been handed back; handing one back twice is harmless. */
  readonly handBacks: LeaseRef[] = [];

  handBack(lease: LeaseRef): void {
    if (this.handBacks.length < MAX_HAND_BACKS) this.handBacks.push(lease);
  }

  grant(agent: string, nonce: string): void {
    const known = this.grants.get(agent) ?? [];
    if (known.length < MAX_GRANTS) this.grants.set(agent, [...known, { nonce, at: Date.now() }]);
  }

  /** Once Redis has answered, they are looked for some time more; until then, for as long as it takes. */
  lookedFor(agent: string, grants: readonly Grant[], answered: boolean): void {
    if (!answered) return;
    const now = Date.now();
    const looked = new Set(grants);
    // Others may have come meanwhile.
    const still = (this.grants.get(agent) ?? []).flatMap((grant) => {
      if (!looked.has(grant)) return [grant];
      const { until = now + LOOKED_FOR_MS } = grant;
      return until > now ? [{ ...grant, until }] : [];
    });
    if (still.length > 0) this.grants.set(agent, still);
    else this.grants.delete(agent);
  }

  offer(offer: Offer): void {
    if (this.offers.length < MAX_OFFERS) this.offers.push(offer);
  }
}
