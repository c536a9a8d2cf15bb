/**
 * Serves all subscriptions, at one gateway at a time, the leader: reads the events, adds the notifications that time makes
 * due, and starts the delivery of lanes that are due. Limit: begins once there is a subscription; a broker without one has
 * neither the timer nor the reads. One leader only saves work: each step is safe at several gateways at once.
 */
import type { Entry } from "../../events/entry.ts";
import { isOutOfMemory } from "../../redis/errors.ts";
import { keys } from "../../redis/keys.ts";
import { Script } from "../../redis/script.ts";
import { warn } from "../after-move.ts";
import type { Broker, SubscriptionService } from "../broker.ts";
import { Audience } from "./audience.ts";
import { notifyOfTime } from "./expiring.ts";
import { isOfInterest } from "./happenings.ts";
import { NoWorkers } from "./no-workers.ts";
import { putOff } from "./put-off.ts";
import { readShard } from "./reader.ts";
import { Slots } from "./slots.ts";
import { CLAIMED_AT_ONCE, type LaneClaim, SubscriptionStore } from "./store.ts";

const EVERY_MS = 1_000;
/** Longer than one look takes. A leader that dies is replaced after this. */
const LEAD_MS = 3_000;
/** How long events are collected before they are read. */
const SOON_MS = 25;
/** Events are also read after this many that concern nobody, so that the position does not fall behind the stream. */
const MANY = 1_000;
/** A lane whose job did not begin gets another one after this. */
const WAKE_AGAIN_MS = 10_000;
const WORKERS_EVERY_MS = 2_000;

/** KEYS: the leader · ARGV: this gateway, for how long it leads, ms · Returns 1 when this gateway leads. */
const leadScript = new Script(`#!lua flags=allow-oom
local now = redis.call('GET', KEYS[1])
if now and now ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`);

export class Notifier implements SubscriptionService {
  readonly store: SubscriptionStore;
  readonly slots = new Slots();
  readonly #broker: () => Broker;
  readonly #everyMs: number;
  #audience: Audience | null = null;
  #leads = false;
  #timer: NodeJS.Timeout | null = null;
  #soon: NodeJS.Timeout | null = null;
  #release: () => void = () => {};
  #begun = false;
  #stopped = false;
  /** By shard: events since it was read. */
  readonly #unread = new Map<number, number>();
  #running: Promise<unknown> = Promise.resolve();
  readonly #noWorkers = new NoWorkers();
  #workersAt = Number.NEGATIVE_INFINITY;

  /** `everyMs`: 0 to look only on `tick()`. */
  constructor({ redis, clock }: Pick<Broker, "redis" | "clock">, broker: () => Broker, everyMs = EVERY_MS) {
    this.store = new SubscriptionStore(redis, clock);
    this.#broker = broker;
    this.#everyMs = everyMs;
  }

  async start(): Promise<void> {
    const { bus } = this.#broker();
    const beginIfAny = async () => {
      if (await this.store.any()) this.#begin();
    };
    await bus.subscribe(keys.subscriptionsChanged, () => this.#begin());
    bus.onGap(() => void beginIfAny().catch((error: unknown) => this.#warn(error)));
    await beginIfAny();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    if (this.#soon) clearTimeout(this.#soon);
    this.#release();
    await this.#running;
    if (!this.#leads) return;
    const { redis, gateway } = this.#broker();
    // So another gateway leads at once.
    await leadScript.run(redis, [keys.notifier], [gateway, 1]).catch(() => {});
  }

  /** Call it when subscriptions have changed. */
  async changed(): Promise<void> {
    try {
      this.#begin();
      await this.#broker().bus.publish(keys.subscriptionsChanged, "");
    } catch (error) {
      this.#warn(error);
    }
  }

  /** Does everything that is due now, after any look that still runs. Returns the number of lanes whose delivery it started. */
  tick(): Promise<number> {
    const next = this.#running.then(() => this.#look());
    this.#running = next.catch(() => {});
    return next;
  }

  #begin(): void {
    if (this.#begun || this.#stopped) return;
    this.#begun = true;
    const { feed } = this.#broker();
    this.#release = feed.subscribe(
      { kind: "all" },
      { push: (entry) => this.#onEvent(entry), gap: () => this.#onGap() },
    );
    this.#lookLater();
  }

  #onEvent(entry: Entry): void {
    if (!this.#leads) return;
    const { shard } = entry;
    const unread = (this.#unread.get(shard) ?? 0) + 1;
    this.#unread.set(shard, unread);
    if (isOfInterest(entry) || unread % MANY === 0) this.#lookSoon();
  }

  #onGap(): void {
    for (const shard of this.#broker().shards.all.keys()) this.#unread.set(shard, 0);
    this.#lookSoon();
  }

  #lookSoon(): void {
    if (this.#stopped || this.#everyMs === 0) return;
    this.#soon ??= setTimeout(() => {
      this.#soon = null;
      this.tick().catch((error: unknown) => this.#warn(error));
    }, SOON_MS);
  }

  #lookLater(): void {
    if (this.#stopped || this.#everyMs === 0) return;
    this.#timer = setTimeout(() => {
      this.tick().then(
        () => this.#lookLater(),
        (error: unknown) => {
          this.#warn(error);
          this.#lookLater();
        },
      );
    }, this.#everyMs);
  }

  async #look(): Promise<number> {
    if (this.#stopped) return 0;
    const { redis, gateway } = this.#broker();
    const led = this.#leads;
    this.#leads = (await leadScript.run(redis, [keys.notifier], [gateway, LEAD_MS])) === 1;
    if (!this.#leads) return 0;
    try {
      return await this.#lookAsLeader(led);
    } catch (error) {
      // Another gateway may succeed.
      this.#leads = false;
      await leadScript.run(redis, [keys.notifier], [gateway, 1]).catch(() => {});
      throw error;
    }
  }

  async #lookAsLeader(led: boolean): Promise<number> {
    const broker = this.#broker();
    const audience = await this.#current();
    if (audience.isEmpty) return 0;
    for (const shard of broker.shards.all.keys()) {
      // A new leader reads all shards, because it does not know what the last one has read.
      if (led && !this.#unread.has(shard) && this.#everyMs !== 0) continue;
      this.#unread.delete(shard);
      const isDone = await this.#tried(() => readShard(broker, this.store, () => this.#current(), shard));
      if (isDone !== true) this.#unread.set(shard, MANY);
    }
    const now = await this.store.now();
    await this.#tried(() => notifyOfTime(broker, this.store, audience, now));
    if (now - this.#workersAt >= WORKERS_EVERY_MS || this.#everyMs === 0) {
      this.#workersAt = now;
      await this.#tried(() => this.#noWorkers.look(broker, this.store, audience, now));
    }
    return this.#wake(now);
  }

  /** Undefined after an error: a shard that is away, or an entry that cannot be read, must not stop the rest. */
  async #tried<T>(step: () => Promise<T>): Promise<T | undefined> {
    try {
      return await step();
    } catch (error) {
      this.#warn(error);
      return undefined;
    }
  }

  /** The audience, read again if subscriptions have changed. */
  async #current(): Promise<Audience> {
    const now = await this.store.now();
    const version = await this.store.version();
    if (this.#audience?.version === version) {
      this.#audience.now = now;
      return this.#audience;
    }
    const all = await this.store.all();
    this.#audience = new Audience(all.version, now, all.subscriptions);
    return this.#audience;
  }

  async #wake(now: number): Promise<number> {
    const broker = this.#broker();
    const wake = (lane: LaneClaim) =>
      broker.outbound.add({ kind: "notify", ...lane }).catch((error: unknown) => {
        // Without memory there is no job; `putOff` makes the channel say so.
        if (isOutOfMemory(error)) return putOff(broker, lane, error);
        throw error;
      });
    for (let count = 0; ; ) {
      const lanes = await this.store.claim(now, now + WAKE_AGAIN_MS);
      await Promise.all(lanes.map(wake));
      count += lanes.length;
      if (lanes.length < CLAIMED_AT_ONCE) return count;
    }
  }

  #warn(error: unknown): void {
    warn(this.#broker(), error, "subscriptions were not looked at");
  }
}
