/** The reasons why a lease is lost, and the errors that report it to a handler. */
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
 * Ends a handler's run when it asks a question: `ask` throws it, and it is the reason of the handler's signal. The lease is
 * over, and the answer starts the handler again. Do not catch it: nothing that the handler does after it is sent.
 */
export class ParkedError extends Error {
  override readonly name = "ParkedError";

  constructor() {
    super("the delegation waits for an answer: this run is over, the answer starts the next");
  }
}
