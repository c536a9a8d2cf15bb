/** The reasons why a lease is lost, and the errors that report it to a handler. */
import type { BudgetShown } from "../schema/budget.ts";
import { LEASE_LOST_REASONS, type LeaseLostReason } from "../schema/lease.ts";

/** The broker's reason; `unknown`: the broker does not know the lease; `refused`: it refuses the token. */
export type LostReason = LeaseLostReason | "unknown" | "refused";

export function toLostReason(value: unknown): LostReason {
  return LEASE_LOST_REASONS.find((reason) => reason === value) ?? "unknown";
}

/** The reason of a handler's signal when its lease is lost: nothing that the handler does now is accepted. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";
  readonly reason: LostReason;

  constructor(reason: LostReason) {
    super(`the lease is gone: ${reason}`);
    this.reason = reason;
  }
}

/**
 * The reason of a handler's signal when the broker was silent for twice the length of the lease: another worker may have
 * the work by now. What the handler returns is still sent, and counts if no other worker has begun. If it throws, the work
 * is released.
 */
export class CutOffError extends Error {
  override readonly name = "CutOffError";
  /** How long ago the last call was sent that the broker answered, ms. */
  readonly silentMs: number;

  constructor(silentMs: number) {
    super(
      `the last heartbeat that the broker answered was sent ${Math.round(silentMs / 1000)} s ago, so another worker may have the work`,
    );
    this.silentMs = silentMs;
  }
}

/** The reason of `work.overBudget`: more was used than the budget allows, and the lease is lost at its `stops_at`. */
export class OverBudgetError extends Error {
  override readonly name = "OverBudgetError";
  readonly budget: BudgetShown;

  constructor(budget: BudgetShown) {
    super(`more was used than the budget allows; the lease ends at ${budget.stops_at}`);
    this.budget = budget;
  }
}

/** Reasons why a lease is lost because its holder wants to wait without it. */
export type ParkedReason = "interrupted" | "awaiting";
export const isParked = (reason: LostReason | null): reason is ParkedReason =>
  reason === "interrupted" || reason === "awaiting";

/**
 * Ends a handler's run when it asks a question or waits for children: `ask` and `waitFor` throw it, and it is the reason of
 * the handler's signal. The lease is over, and the answer, or the end of the children, starts the handler again. Do not
 * catch it: nothing that the handler does after it is sent.
 */
export class ParkedError extends Error {
  override readonly name = "ParkedError";

  constructor(reason: ParkedReason = "interrupted") {
    super(
      reason === "interrupted"
        ? "the delegation waits for an answer: this run is over, the answer starts the next"
        : "the delegation waits for its children: this run is over, their end starts the next",
    );
  }
}
