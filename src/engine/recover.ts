/**
 * What was under way when Redis fell silent: a ticket popped, a lease granted, and the answer never came. Once Redis
 * is back they are found out and given back, so that the work does not wait for a lease to lapse.
 * Limit: in memory; what a dying process leaves is the sweep's.
 */
import type { Command } from "../lifecycle/writer.ts";
import type { Broker } from "./context.ts";
import { report } from "./dispatch.ts";
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
      const { grants, pops } = this.#broker.unheard;
      if (!this.#running && grants.length + pops.size > 0) void this.#run();
    }, EVERY_MS).unref();
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
  }

  /** One round; what can not be found out yet stays for the next. */
  async #run(): Promise<void> {
    this.#running = true;
    const { unheard } = this.#broker;
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

/** What a poll could not find out. */
export class Unheard {
  readonly grants: Command[] = [];
  /** Agent → when it was last not known whether one of its tickets was popped, ms. */
  readonly pops = new Map<string, number>();

  pop(agent: string): void {
    this.pops.set(agent, Date.now());
  }
}
