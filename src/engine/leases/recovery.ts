/**
 * Resolves what is in doubt after Redis fell silent, once it answers again, so that the work does not wait for the sweep.
 */
import { isUnavailable } from "../../redis/errors.ts";
import { Script } from "../../redis/script.ts";
import { wake, warn } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import type { Grant } from "./in-doubt.ts";
import { giveBack, handBack } from "./lease.ts";

const EVERY_MS = 500;
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
