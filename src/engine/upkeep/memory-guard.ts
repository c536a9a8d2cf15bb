/**
 * Refuses requests when Redis' memory is short: first new work, then moves that make delegations larger. The rest is for
 * replies and releases. Limit: checks once a second, so a flood may pass a threshold; Redis' own limit still applies.
 */
import type { Redis } from "../../redis/connect.ts";
import { fieldOf, mastersOf } from "../../redis/servers.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Principal } from "../access/access.ts";

/** Share of maxmemory above which new work is refused. */
const FULL = LIMITS.memory_new_work.value / 100;
/** Share of maxmemory above which no delegation may grow. */
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
    // While Redis does not answer, the last known share counts; other commands report the outage.
    this.#timer = setInterval(() => void this.check().catch(() => {}), EVERY_MS).unref();
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
  }

  async check(): Promise<void> {
    const masters = await mastersOf(this.#redis);
    const answers = await Promise.allSettled(
      masters.map(async (master) => {
        const info = await master.info("memory");
        return {
          max: Number(fieldOf(info, "maxmemory") ?? 0),
          used: Number(fieldOf(info, "used_memory") ?? 0),
        };
      }),
    );
    // A master that does not answer accepts no work, so it does not count.
    const memory = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    const failure = answers.find((answer) => answer.status === "rejected");
    if (failure && memory.length === 0) throw failure.reason;
    // A Cluster is as full as its fullest master, because work cannot go to another one.
    this.#share = Math.max(0, ...memory.map(({ max, used }) => (max > 0 ? used / max : 0)));
    if (failure) return;
    this.#maxBytes = memory.some(({ max }) => max === 0) ? 0 : memory.reduce((sum, { max }) => sum + max, 0);
  }

  /** Limit of the bytes that this principal's delegations may keep in one shard; undefined: no limit. */
  maxKeptBytes({ kind }: Pick<Principal, "kind">): number | undefined {
    const max = Math.floor(this.#maxBytes * this.#delegatorShare);
    return kind === "operator" || max === 0 || !Number.isFinite(max) ? undefined : max;
  }

  isReached(): boolean {
    return this.#share >= CEILING;
  }

  /** Throws `overloaded` while memory is short. */
  requireRoom(): void {
    if (this.#share < FULL) return;
    throw new ErrandError("overloaded", "The broker's storage is nearly full; new work is refused.", {
      details: { outcome: "not_executed" },
      retry_after_seconds: 5,
    });
  }
}
