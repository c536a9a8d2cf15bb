/**
 * Limits what one principal keeps open at this gateway, so that a client that leaks connections does not starve the others.
 * The gateways of one supervisor count polls and streams together. Limit: a gateway elsewhere grants the same again.
 */
import type { GatewayCounts } from "../../gateways/quota-counts.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Principal } from "./access.ts";

export type Quota = "polls" | "streams" | "transfers";

export class Quotas {
  readonly #limits: Readonly<Record<Quota, number>>;
  readonly #open: Record<Quota, Map<string, number>> = {
    polls: new Map(),
    streams: new Map(),
    transfers: new Map(),
  };

  readonly #shared: GatewayCounts | undefined;

  /** `shared`: the counts at the other gateways of the same supervisor. */
  constructor(limits: Partial<Record<Quota, number>> = {}, shared?: GatewayCounts) {
    this.#shared = shared;
    this.#limits = {
      polls: LIMITS.polls.value,
      streams: LIMITS.streams.value,
      transfers: LIMITS.transfers.value,
      ...limits,
    };
  }

  /** How many the principal has open. */
  inUse({ text }: Pick<Principal, "text">, quota: Quota): number {
    return this.#open[quota].get(text) ?? 0;
  }

  /** Throws `quota_exceeded` when the principal has reached the quota. */
  requireRoom(principal: Principal, quota: Quota): void {
    const limit = this.#limits[quota];
    if (principal.kind === "operator") return;
    const elsewhere = this.#shared?.elsewhere(quota, principal.text) ?? 0;
    if (this.inUse(principal, quota) + elsewhere < limit) return;
    throw new ErrandError(
      "quota_exceeded",
      `${principal.text} has too many ${quota} open; the limit is ${limit}.`,
      { retry_after_seconds: 5, details: { quota, limit } },
    );
  }

  /** Counts one; call {@link release} once for it. */
  acquire(principal: Principal, quota: Quota): void {
    this.requireRoom(principal, quota);
    this.#set(principal.text, quota, this.inUse(principal, quota) + 1);
  }

  release({ text }: Pick<Principal, "text">, quota: Quota): void {
    this.#set(text, quota, this.inUse({ text }, quota) - 1);
  }

  #set(owner: string, quota: Quota, count: number): void {
    if (count > 0) this.#open[quota].set(owner, count);
    else this.#open[quota].delete(owner);
    // The operator has no limit, so nobody needs its count.
    if (owner !== "operator") this.#shared?.changed(quota, owner, count, this.#limits[quota]);
  }
}
