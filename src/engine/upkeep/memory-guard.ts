/**
 * Keeps room for work to end when Redis' memory gets short: new work is refused first, then what makes work in flight
 * larger. Limit: checks once a second, so a flood may pass a mark for a second; Redis' own limit is the last defense.
 */
import type { Redis } from "../../redis/connect.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Principal } from "../access/access.ts";

/** Share of maxmemory from which on nothing new is taken. */
const FULL = LIMITS.memory_new_work.value / 100;
/** Share from which on nothing may grow; the rest is reserved for work to end and return. */
const CEILING = LIMITS.memory_ceiling.value / 100;
const EVERY_MS = 1_000;

export class MemoryGuard {
  readonly #redis: Redis;
  /** The share of maxmemory that one delegator's delegations may keep in one shard. */
  readonly #delegatorShare: number;
  #maxBytes = 0;
  #share = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(
    redis: Redis,
    { percent = LIMITS.delegator_percent.value, shards = 1 }: { percent?: number; shards?: number } = {},
  ) {
    this.#redis = redis;
    this.#delegatorShare = percent < 100 ? percent / 100 / shards : Number.POSITIVE_INFINITY;
  }

  start(): void {
    // Redis away is told by what asks it for something; the last known share stands meanwhile.
    this.#timer = setInterval(() => void this.check().catch(() => {}), EVERY_MS).unref();
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
  }

  async check(): Promise<void> {
    const info = await this.#redis.info("memory");
    const number = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
    const max = number("maxmemory");
    this.#maxBytes = max;
    this.#share = max > 0 ? number("used_memory") / max : 0;
  }

  /** How many bytes the delegations of this principal may keep in one shard; undefined: no limit. */
  mostKept({ kind }: Pick<Principal, "kind">): number | undefined {
    const most = Math.floor(this.#maxBytes * this.#delegatorShare);
    return kind === "operator" || most === 0 || !Number.isFinite(most) ? undefined : most;
  }

  isReached(): boolean {
    return this.#share >= CEILING;
  }

  /** Throws `overloaded` while memory is short. */
  requireRoom(): void {
    if (this.#share < FULL) return;
    throw new ErrandError("overloaded", "The broker's storage is nearly full; work in flight goes first.", {
      details: { outcome: "not_executed" },
      retry_after_seconds: 5,
    });
  }
}
