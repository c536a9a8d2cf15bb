/**
 * What was under way when Redis fell silent: a ticket to be made, a ticket popped, a lease granted, and the answer
 * never came. Once Redis is back they are made or given back, so that the work does not wait for the sweep.
 * Limit: in memory; what a dying process leaves is the sweep's.
 */
import type { Command } from "../lifecycle/writer.ts";
import type { TicketData, TicketOrder } from "../queue/tickets.ts";
import type { Broker } from "./context.ts";
import { report, wake } from "./dispatch.ts";
import { handBack } from "./lease.ts";
import type { Sweep } from "./sweep.ts";

const EVERY_MS = 500;
/** Longest that a ticket of a living gateway stays popped. */
const POPPED_MS = 500;

export class Recovery {
  readonly #broker: Broker;
  readonly #sweep: Sweep;
  #timer: NodeJS.Timeout | null = null;
  #running = false;

  constructor(broker: Broker, sweep: Sweep) {
    this.#broker = broker;
    this.#sweep = sweep;
  }

  start(): void {
    this.#timer = setInterval(() => {
      const { grants, pops, offers } = this.#broker.unheard;
      if (!this.#running && grants.length + pops.size + offers.length > 0) void this.#run();
    }, EVERY_MS).unref();
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
  }

  /** One round; what can not be found out yet stays for the next. */
  async #run(): Promise<void> {
    this.#running = true;
    const { unheard } = this.#broker;
    for (const offer of unheard.offers.splice(0)) {
      const { agent, data, order } = offer;
      await this.#broker.tickets.add(agent, data, order).then(
        () => wake(this.#broker, agent),
        (error: unknown) => {
          unheard.offer(offer);
          report(this.#broker, error, "ticket not made yet");
        },
      );
    }
    for (const grant of unheard.grants.splice(0)) {
      await this.#giveBack(grant).catch((error: unknown) => {
        unheard.grants.push(grant);
        report(this.#broker, error, "grant not found out yet");
      });
    }
    for (const [agent, at] of [...unheard.pops]) {
      if (Date.now() - at <= 2 * POPPED_MS) continue;
      await this.#lookForPopped(agent).then(
        () => unheard.pops.delete(agent),
        (error: unknown) => report(this.#broker, error, "popped tickets not found out yet"),
      );
    }
    this.#running = false;
  }

  /** The same grant once more: if it was made it is told again, if not it is made now; back it goes either way. */
  async #giveBack(grant: Command): Promise<void> {
    const { outcome } = await this.#broker.writer.move(grant);
    if (outcome.outcome === "ok") {
      await handBack(this.#broker, [{ delegation_id: grant.id, fence: outcome.fence, json: "" }]);
    }
  }

  async #lookForPopped(agent: string): Promise<void> {
    for (const { delegation_id, ticket } of await this.#broker.tickets.popped(agent, POPPED_MS)) {
      await this.#sweep.checkTicket(delegation_id, agent, ticket);
    }
  }
}

interface Offer {
  readonly agent: string;
  readonly data: TicketData;
  readonly order: TicketOrder;
}

/** More than this is left to the sweep. */
const MAX_OFFERS = 10_000;

/** What could not be found out. */
export class Unheard {
  readonly grants: Command[] = [];
  /** Agent → when it was last not known whether one of its tickets was popped, ms. */
  readonly pops = new Map<string, number>();
  /** Tickets of which it is not known whether the queue has them; twice is once. */
  readonly offers: Offer[] = [];

  pop(agent: string): void {
    this.pops.set(agent, Date.now());
  }

  offer(offer: Offer): void {
    if (this.offers.length < MAX_OFFERS) this.offers.push(offer);
  }
}
