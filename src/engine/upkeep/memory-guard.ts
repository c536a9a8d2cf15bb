/**
 * Keeps memory free for work in progress when Redis' memory is short: new work is refused first, then what makes work in
 * progress larger. Limit: checks once a second, so a flood may exceed a mark for a second; then Redis' own limit applies.
 */
import type { Redis } from "../../redis/connect.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Principal } from "../access/access.ts";

/** Share of maxmemory above which new work is refused. */
const FULL = LIMITS.memory_new_work.value / 100;
/** Share above which nothing may grow; the rest is reserved for replies and releases. */
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
    // While Redis is away the last known share counts; other commands report the outage.
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
