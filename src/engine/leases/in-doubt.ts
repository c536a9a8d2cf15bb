/**
 * What was under way when Redis fell silent: a ticket to be made, a lease to be granted or handed back, and the answer
 * never came. Once Redis is back they are made or given back, so that the work does not wait for the sweep.
 * Limit: in memory; what a dying process leaves is the sweep's.
 */
import type { TicketData, TicketOrder } from "../../queue/tickets.ts";
import { isUnavailable } from "../../redis/errors.ts";
import { Script } from "../../redis/script.ts";
import { wake, warn } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { giveBack, handBack, type LeaseRef } from "./lease.ts";

const EVERY_MS = 500;
/** A command that Redis had when it fell silent may be carried out after it speaks again. */
const LOOKED_FOR_MS = 5_000;
/** Leases that one look of the script goes through. */
const PAGE = 1_000;
/** A gateway's clock and Redis' may differ. */
const SLACK_MS = 60_000;

/**
 * KEYS: an agent's leases · ARGV: prefix of the records, since when they were granted, how many newer ones to pass over,
 * how many to look through, their nonces · how many it looked through, then delegation and fence of each that lives.
 */
const findGrantsScript = new Script(`#!lua flags=no-writes
local wanted = {}
for i = 5, #ARGV do wanted[ARGV[i]] = true end
local ids = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', ARGV[2], 'LIMIT', ARGV[3], ARGV[4])
local found = { #ids }
for _, id in ipairs(ids) do
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
      const { grants, offers, handBacks } = this.#broker.unheard;
      if (this.#running || grants.size + offers.length + handBacks.length === 0) return;
      this.#running = true;
      this.#run()
        .catch((error: unknown) => warn(this.#broker, error, "recovery interrupted"))
        .finally(() => {
          this.#running = false;
        });
    }, EVERY_MS).unref();
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
  }

  /** One round; what can not be found out yet stays for the next. */
  async #run(): Promise<void> {
    const { unheard } = this.#broker;
    for (const offer of unheard.offers.splice(0)) {
      const { agent, data, order } = offer;
      await this.#broker.tickets.add(agent, data, order).then(
        () => wake(this.#broker, agent),
        (error: unknown) => {
          unheard.offer(offer);
          warn(this.#broker, error, "ticket not made yet");
        },
      );
    }
    await this.#handBack();
    for (const [agent, grants] of [...unheard.grants]) {
      const looked = await this.#giveBack(agent, grants).then(
        () => true,
        (error: unknown) => {
          warn(this.#broker, error, "grants not found out yet");
          // What Redis refuses it would refuse for ever.
          return !isUnavailable(error);
        },
      );
      unheard.lookedFor(agent, grants, looked);
      // Nobody else's would be found out, and each look takes its time to fail.
      if (!looked) break;
    }
  }

  /** In order, until Redis does not answer. */
  async #handBack(): Promise<void> {
    const { unheard } = this.#broker;
    for (let lease = unheard.handBacks[0]; lease !== undefined; lease = unheard.handBacks[0]) {
      try {
        await giveBack(this.#broker, lease);
      } catch (error) {
        warn(this.#broker, error, "lease not handed back yet");
        // Redis would refuse it every time: give up, and let the lease lapse.
        if (isUnavailable(error)) return;
      }
      unheard.handBacks.shift();
    }
  }

  /** What was granted after all goes back; nobody has it. */
  async #giveBack(agent: string, grants: readonly Grant[]): Promise<void> {
    const { redis, shards, clock } = this.#broker;
    const keys = shards.ofAgent(agent);
    const since = Math.min(...grants.map(({ at }) => at)) + clock.offset_ms - SLACK_MS;
    const nonces = grants.map(({ nonce }) => nonce);
    const found: string[] = [];
    for (let passed = 0, seen = PAGE; seen === PAGE; passed += PAGE) {
      const answer = await findGrantsScript.run(
        redis,
        [keys.live(agent, "working")],
        [keys.delegation(""), since, passed, PAGE, ...nonces],
      );
      const [count = "0", ...some] = Array.isArray(answer) ? answer.map(String) : [];
      seen = Number(count);
      found.push(...some);
    }
    for (let i = 0; i + 1 < found.length; i += 2) {
      await handBack(this.#broker, [{ delegation_id: found[i] ?? "", fence: Number(found[i + 1]) }]);
    }
  }
}

interface Grant {
  readonly nonce: string;
  /** When its answer was given up, ms. */
  readonly at: number;
  /** Until when it is looked for, ms; from the first look on that Redis answered. */
  readonly until?: number;
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
