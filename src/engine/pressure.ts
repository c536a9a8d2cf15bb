/**
 * Keeps room for work to end when Redis' memory gets short: new work is refused first, then what makes work in flight
 * larger. Limit: looks once a second, so a flood may get a second's worth past a mark; Redis' own limit is the last line.
 */
import type { Redis } from "../redis/connect.ts";
import { ErrandError } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";

/** Share of maxmemory from which on nothing new is taken. */
const FULL = LIMITS.memory_new_work.value / 100;
/** And from which on nothing grows; the rest is left to what ends, frees and returns. */
const CEILING = LIMITS.memory_ceiling.value / 100;
const EVERY_MS = 1_000;

export class Pressure {
  readonly #redis: Redis;
  #share = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  start(): void {
    // Redis away is told by what asks it for something; the last known share stands meanwhile.
    this.#timer = setInterval(() => void this.look().catch(() => {}), EVERY_MS).unref();
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
  }

  async look(): Promise<void> {
    const info = await this.#redis.info("memory");
    const number = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
    const max = number("maxmemory");
    this.#share = max > 0 ? number("used_memory") / max : 0;
  }

  isReached(): boolean {
    return this.#share >= CEILING;
  }

  /** Throws `overloaded` while memory is short. */
  requireRoom(): void {
    if (this.#share < FULL) return;
    throw new ErrandError("overloaded", "The broker's storage is nearly full; work in flight goes first.", {
      retry_after_seconds: 5,
    });
  }
}
