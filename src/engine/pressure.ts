/**
 * Keeps work in flight safe when Redis' memory gets short: new work is refused first. Limit: looks once a second, so a
 * flood may get a second's worth past the mark; `noeviction` is the last line.
 */
import type { Redis } from "../redis/connect.ts";
import { ErrandError } from "../schema/errors.ts";

/** Share of maxmemory from which on nothing new is taken. */
const FULL = 0.75;
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

  /** Throws `overloaded` while memory is short. */
  requireRoom(): void {
    if (this.#share < FULL) return;
    throw new ErrandError("overloaded", "The broker's storage is nearly full; work in flight goes first.", {
      retry_after_seconds: 5,
    });
  }
}
