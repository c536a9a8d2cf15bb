/**
 * Runs the schedules at this gateway: wakes from BullMQ, and a sweep for those that no wake reached. Limit: begins once there
 * is a schedule; a broker without one has neither the timer nor the connection.
 */
import type { ScheduleQueue } from "../../queue/schedule-queue.ts";
import { keys } from "../../redis/keys.ts";
import { warn } from "../after-move.ts";
import type { Broker, ScheduleService } from "../broker.ts";
import { type Advances, advance } from "./advance.ts";
import { ScheduleStore } from "./store.ts";
import type { StoredSchedule } from "./stored-schedule.ts";

type Needs = Advances & Pick<Broker, "bus" | "clock">;

const SWEEP_MS = 5_000;
/** How many the sweep looks at in one go. */
const AT_ONCE = 50;
/** A schedule that is due for so long was not woken; its job scheduler may be lost. */
const UNWOKEN_MS = 3_000;
const GRACE_MS = 2_000;

export class Schedules implements ScheduleService {
  readonly store: ScheduleStore;
  readonly #broker: () => Needs;
  readonly #openQueue: (wake: (id: string) => Promise<void>) => ScheduleQueue;
  readonly #everyMs: number;
  #queue: ScheduleQueue | null = null;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  /** `everyMs`: 0 for a sweep only on `tick()`. */
  constructor(
    { redis, clock }: Pick<Broker, "redis" | "clock">,
    broker: () => Needs,
    openQueue: (wake: (id: string) => Promise<void>) => ScheduleQueue,
    everyMs = SWEEP_MS,
  ) {
    this.store = new ScheduleStore(redis, clock);
    this.#broker = broker;
    this.#openQueue = openQueue;
    this.#everyMs = everyMs;
  }

  async start(): Promise<void> {
    const { bus } = this.#broker();
    const beginIfAny = async () => {
      if ((await this.store.due(1)).any) this.#begin();
    };
    await bus.subscribe(keys.schedulesMade, () => this.#begin());
    bus.onGap(() => void beginIfAny().catch((error: unknown) => this.#warn(error)));
    await beginIfAny();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    await Promise.all([this.#queue?.stop(GRACE_MS), this.#running]);
  }

  /** From now on it is woken at its ticks, at any gateway; or no longer, unless it is active. */
  async setWakes({ id, state, settings }: Pick<StoredSchedule, "id" | "state" | "settings">): Promise<void> {
    try {
      const queue = this.#begin();
      if (state !== "active") return await queue?.remove(id);
      await queue?.set(id, settings);
      const { bus } = this.#broker();
      await bus.publish(keys.schedulesMade, "");
    } catch (error) {
      // The sweep finds it.
      this.#warn(error);
    }
  }

  async removeWakes(id: string): Promise<void> {
    await this.#begin()
      ?.remove(id)
      .catch((error: unknown) => this.#warn(error));
  }

  /** Makes everything that is due now; returns the number of schedules. */
  async tick(): Promise<number> {
    let handled = 0;
    for (let full = true; full && !this.#stopped; ) {
      const { ids, now } = await this.store.due(AT_ONCE);
      await Promise.all(
        ids.map(async ({ id, at }) => {
          if (now - at > UNWOKEN_MS) await this.#heal(id);
          await this.#advance(id);
        }),
      );
      // Those that could not be looked at must not keep others waiting.
      await this.store.postpone(
        ids.map(({ id }) => id),
        { due: now, until: now + SWEEP_MS },
      );
      handled += ids.length;
      full = ids.length === AT_ONCE;
    }
    return handled;
  }

  #begin(): ScheduleQueue | null {
    if (this.#queue || this.#stopped) return this.#queue;
    this.#queue = this.#openQueue(async (id) => {
      // One that stopped by itself, or that was deleted while its wakes were set, is not woken again.
      if ((await this.#advance(id)) === false) await this.removeWakes(id);
    });
    this.#queue.start();
    this.#sweepLater();
    return this.#queue;
  }

  #sweepLater(): void {
    if (this.#stopped || this.#everyMs === 0) return;
    this.#timer = setTimeout(() => {
      this.#running = this.tick().then(
        () => {},
        (error: unknown) => this.#warn(error),
      );
      void this.#running.finally(() => this.#sweepLater());
    }, this.#everyMs);
  }

  async #heal(id: string): Promise<void> {
    try {
      const found = await this.store.find(id);
      if (found?.schedule.state === "active") await this.#queue?.set(id, found.schedule.settings);
    } catch (error) {
      this.#warn(error);
    }
  }

  /** Undefined after an error. */
  async #advance(id: string): Promise<boolean | undefined> {
    try {
      return await advance(this.#broker(), id);
    } catch (error) {
      this.#warn(error);
      return undefined;
    }
  }

  #warn(error: unknown): void {
    warn(this.#broker(), error, "a schedule was not looked at");
  }
}
