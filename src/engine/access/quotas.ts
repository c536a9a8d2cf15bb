/**
 * Limits what one principal keeps open at this gateway, so that a client that leaks connections does not starve the others.
 * Limit: counted per process; every other gateway grants the same again.
 */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Principal } from "./access.ts";

export type Quota = "polls" | "streams" | "sessions";

export class Quotas {
  readonly #limits: Readonly<Record<Quota, number>>;
  readonly #held: Record<Quota, Map<string, number>> = {
    polls: new Map(),
    streams: new Map(),
    sessions: new Map(),
  };

  constructor(limits: Partial<Record<Quota, number>> = {}) {
    this.#limits = {
      polls: LIMITS.polls.value,
      streams: LIMITS.streams.value,
      sessions: LIMITS.sessions.value,
      ...limits,
    };
  }

  /** How many the principal has open. */
  inUse({ text }: Pick<Principal, "text">, quota: Quota): number {
    return this.#held[quota].get(text) ?? 0;
  }

  /** For callers that keep their own count. */
  limit(quota: Quota): number {
    return this.#limits[quota];
  }

  /** Throws `quota_exceeded` when the principal has reached the quota. */
  requireRoom(principal: Principal, quota: Quota): void {
    const limit = this.#limits[quota];
    if (principal.kind === "operator" || this.inUse(principal, quota) < limit) return;
    throw new ErrandError(
      "quota_exceeded",
      `${principal.text} has too many ${quota} open at this gateway; the limit is ${limit}.`,
      { retry_after_seconds: 5, details: { quota, limit } },
    );
  }

  /** Counts one; call {@link release} once for it. */
  acquire(principal: Principal, quota: Quota): void {
    this.requireRoom(principal, quota);
    this.#held[quota].set(principal.text, this.inUse(principal, quota) + 1);
  }

  release({ text }: Pick<Principal, "text">, quota: Quota): void {
    const left = this.inUse({ text }, quota) - 1;
    if (left > 0) this.#held[quota].set(text, left);
    else this.#held[quota].delete(text);
  }
}
