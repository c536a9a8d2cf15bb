/**
 * Samples the queues twice a minute, at one gateway of all, for the charts. Limit: work that comes and goes between two
 * samples is not counted.
 */
import { keys } from "../../redis/keys.ts";
import type { Broker, BulkReads } from "../broker.ts";
import { queueDepths } from "../upkeep/queue-depths.ts";

type SamplerNeeds = BulkReads & Pick<Broker, "clock" | "counters" | "gateway" | "redis">;

const EVERY_MS = 30_000;

export class QueueSampler {
  readonly #broker: SamplerNeeds;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<unknown> = Promise.resolve();

  constructor(broker: SamplerNeeds) {
    this.#broker = broker;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#running = this.#sampleOnce().catch(() => {});
    }, EVERY_MS).unref();
  }

  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#running;
  }

  /** The first gateway that asks in this half minute samples for all. */
  async #sampleOnce(): Promise<void> {
    const { redis, gateway } = this.#broker;
    if ((await redis.set(keys.statsSampler, gateway, "PX", EVERY_MS - 1_000, "NX")) === "OK") {
      await this.sample();
    }
  }

  async sample(): Promise<void> {
    const { clock, counters } = this.#broker;
    counters.sample(Date.now() + clock.offset_ms, await queueDepths(this.#broker));
  }
}
