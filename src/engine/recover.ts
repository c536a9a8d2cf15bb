/**
 * What was under way when Redis fell silent: a ticket to be made, a lease to be granted, and the answer never came. Once Redis is back they are made or given back, so that the work does not wait for the sweep.
 * Limit: in memory; what a dying process leaves is the sweep's.
 */
import type { TicketData, TicketOrder } from "../queue/tickets.ts";
import { Script } from "../redis/script.ts";
import type { Broker } from "./context.ts";
import { report, wake } from "./dispatch.ts";
import { handBack } from "./lease.ts";

const EVERY_MS = 500;
/** A command that Redis had when it fell silent may be carried out after it speaks again. */
const LOOKED_FOR_MS = 5_000;
/** A gateway's clock and Redis' may differ. */
const SLACK_MS = 60_000;

/**
 * KEYS: an agent's leases · ARGV: prefix of the records, since when they were granted, their nonces · delegation and
 * fence of each that lives.
 */
const findGrantsScript = new Script(`#!lua flags=no-writes
local wanted, found = {}, {}
for i = 3, #ARGV do wanted[ARGV[i]] = true end
for _, id in ipairs(redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', ARGV[2], 'LIMIT', 0, 1000)) do
  local lease = redis.call('HMGET', ARGV[1] .. id, 'nonce', 'fence')
  if lease[1] and wanted[lease[1]] then
    found[#found + 1], found[#found + 2] = id, lease[2]
  end
end
return found`);

export class Recovery {
  readonly #broker: Broker;
  #timer: NodeJS.Timeout | null = null;
  #running = false;

  constructor(broker: Broker) {
    this.#broker = broker;
  }

  start(): void {
    this.#timer = setInterval(() => {
      const { grants, offers } = this.#broker.unheard;
      if (!this.#running && grants.size + offers.length > 0) void this.#run();
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
    for (const [agent, grants] of [...unheard.grants]) {
      await this.#giveBack(agent, grants).catch((error: unknown) => {
        report(this.#broker, error, "grants not found out yet");
      });
      const still = grants.filter(({ at }) => Date.now() - at < LOOKED_FOR_MS);
      if (still.length > 0) unheard.grants.set(agent, still);
      else unheard.grants.delete(agent);
    }
    this.#running = false;
  }

  /** What was granted after all goes back; nobody has it. */
  async #giveBack(agent: string, grants: readonly Grant[]): Promise<void> {
    const { redis, shards, clock } = this.#broker;
    const keys = shards.ofAgent(agent);
    const since = Math.min(...grants.map(({ at }) => at)) + clock.offset_ms - SLACK_MS;
    const found = await findGrantsScript.run(
      redis,
      [keys.live(agent, "working")],
      [keys.delegation(""), since, ...grants.map(({ nonce }) => nonce)],
    );
    const flat = Array.isArray(found) ? found.map(String) : [];
    for (let i = 0; i + 1 < flat.length; i += 2) {
      await handBack(this.#broker, [{ delegation_id: flat[i] ?? "", fence: Number(flat[i + 1]), json: "" }]);
    }
  }
}

interface Grant {
  readonly nonce: string;
  /** When its answer was given up, ms. */
  readonly at: number;
}

interface Offer {
  readonly agent: string;
  readonly data: TicketData;
  readonly order: TicketOrder;
}

/** More than this is left to the sweep. */
const MAX_OFFERS = 10_000;
const MAX_GRANTS = 1_000;

/** What could not be found out. */
export class Unheard {
  /** Agent → the leases of which it is not known whether they were granted. */
  readonly grants = new Map<string, readonly Grant[]>();
  /** Tickets of which it is not known whether the queue has them; twice is once. */
  readonly offers: Offer[] = [];

  grant(agent: string, nonce: string): void {
    const known = this.grants.get(agent) ?? [];
    if (known.length < MAX_GRANTS) this.grants.set(agent, [...known, { nonce, at: Date.now() }]);
  }

  offer(offer: Offer): void {
    if (this.offers.length < MAX_OFFERS) this.offers.push(offer);
  }
}
