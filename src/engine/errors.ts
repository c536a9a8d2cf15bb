/**
 * Turns the refusals of the script into errors for the caller of a verb.
 * Limit: outcomes that a verb handles itself (ticket, blocked, check …) are bugs when they get here.
 */
import type { Outcome } from "../lifecycle/outcome.ts";
import { isTerminal, type State } from "../schema/delegation.ts";
import { ErrandError, type ErrorContext } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";

/** Recoveries for limits that the caller can get below again. */
const LIMIT_RECOVERY: Readonly<Record<string, string>> = {
  pushes: "Delete a push config of this delegation first.",
  children: "Delegate under another delegation, or without parent_id.",
};

export function refusal(outcome: Outcome, delegationId: string, leaseId?: string): ErrandError {
  const about: ErrorContext = {
    delegation_id: delegationId,
    ...(outcome.state && { delegation_valid: !isTerminal(outcome.state) }),
  };
  switch (outcome.kind) {
    case "missing":
      return leaseId === undefined ? notFound(delegationId) : unknownLease(leaseId);
    case "no_lease":
      return unknownLease(leaseId ?? "");
    case "lease":
      return new ErrandError("lease_lost", `Lease ${leaseId} is gone: ${outcome.reason ?? "expired"}.`, {
        ...about,
        details: { reason: outcome.reason ?? "expired" },
      });
    case "state":
      return wrongState(delegationId, outcome.state);
    case "chunk":
      return new ErrandError(
        "wrong_state",
        "The last chunk of this artifact has the same chunk_id but another body.",
        {
          ...about,
          recovery: "Give each chunk a new chunk_id; to repeat a chunk, send it unchanged.",
        },
      );
    case "no_question":
      return interruptNotOpen(delegationId, about);
    case "other_votes":
      return new ErrandError(
        "forbidden",
        "Others have approved another answer, and a link does not void it.",
        {
          ...about,
          recovery: "Sign in to see what they approved, or deny.",
        },
      );
    case "tombstone":
      return new ErrandError(
        "already_finished",
        "The parent was canceled before this child was created.",
        about,
      );
    case "deleted":
      return new ErrandError(
        "already_finished",
        `Delegation ${delegationId} is finished, and its record was deleted.`,
        {
          ...about,
          delegation_valid: false,
          recovery: "Nothing is left to read. To delegate the task again, use a new Idempotency-Key.",
        },
      );
    case "votes_changed":
      return new ErrandError("agent_busy", "The agent's `votes` are being changed.", {
        ...about,
        recovery: "Send the answer again.",
      });
    case "no_agent":
      return new ErrandError("agent_unknown", "The target agent does not exist, or is being deleted.");
    case "other_agent":
      return new ErrandError("agent_busy", "The target agent was deleted and created again meanwhile.", {
        recovery: "Send the request again.",
      });
    case "too_large":
      return new ErrandError(
        "payload_too_large",
        `The message, result schema, history, artifacts and reply of ${delegationId} exceed 3 MiB together.`,
        about,
      );
    case "memory":
      return new ErrandError(
        "overloaded",
        "The broker's storage is nearly full; only calls that end, return or lease work are accepted.",
        {
          ...about,
          details: { outcome: "not_executed" },
          retry_after_seconds: 5,
        },
      );
    case "limit": {
      const { value, unit } = LIMITS[outcome.limit];
      const most = `${value.toLocaleString("en")} ${unit}`;
      return new ErrandError(
        "limit_reached",
        `Delegation ${delegationId} has reached its limit of ${most}.`,
        {
          ...about,
          details: { limit: outcome.limit, maximum: value },
          ...(outcome.limit in LIMIT_RECOVERY && { recovery: LIMIT_RECOVERY[outcome.limit] }),
        },
      );
    }
    case "pace": {
      const limit_per_second = LIMITS.progress_per_second.value;
      const text = `Delegation ${delegationId} gets too many updates; the limit is ${limit_per_second} a second.`;
      return new ErrandError("rate_limited", text, {
        ...about,
        retry_after_seconds: 1,
        details: { limit_per_second },
      });
    }
    case "usage_shrinks": {
      const { amount, before, reported } = outcome;
      const reason = `must not shrink: ${before} was reported before, and now ${reported}`;
      return new ErrandError("usage_shrinks", `usage.${amount} ${reason}.`, {
        ...about,
        details: { issues: [{ path: `usage.${amount}`, reason }] },
      });
    }
    case "usage_currency": {
      const { currency, of_budget } = outcome;
      const reason = of_budget
        ? `must be ${currency}, as in the budget of this delegation or of one above it`
        : `must be ${currency}, as in earlier reports of this delegation`;
      return new ErrandError("usage_currency", `usage.currency ${reason}.`, {
        ...about,
        details: { currency, issues: [{ path: "usage.currency", reason }] },
      });
    }
    case "share": {
      const { kept, max_kept } = outcome;
      const text = (bytes: number) => bytes.toLocaleString("en");
      return new ErrandError(
        "quota_exceeded",
        `The delegator's delegations keep ${text(kept)} bytes; the limit is ${text(max_kept)}.`,
        {
          retry_after_seconds: 60,
          details: { quota: "kept_bytes", kept_bytes: kept, limit_bytes: max_kept },
          recovery:
            "Delete finished delegations, wait until the retention time deletes them, or ask the operator to raise ERRAND_DELEGATOR_PERCENT or maxmemory.",
        },
      );
    }
    case "full":
      return new ErrandError("queue_full", "The agent's queue has reached its max_waiting.", {
        retry_after_seconds: 5,
      });
    default:
      return new ErrandError("internal", `Unexpected outcome '${outcome.kind}'.`, about);
  }
}

export const notFound = (id: string): ErrandError =>
  new ErrandError("delegation_not_found", `There is no delegation '${id}'.`);

export const interruptNotOpen = (delegation_id: string, context: ErrorContext = {}): ErrandError =>
  new ErrandError("interrupt_not_open", `Delegation ${delegation_id} has no open question with this id.`, {
    delegation_id,
    ...context,
  });

export const unknownLease = (leaseId: string): ErrandError =>
  new ErrandError("lease_unknown", `There is no lease '${leaseId}'.`);

/** The error for a request that is not possible in this state. */
export function wrongState(delegation_id: string, state: State): ErrandError {
  const over = isTerminal(state);
  const code = over ? "already_finished" : "wrong_state";
  return new ErrandError(code, `Delegation ${delegation_id} is ${state}.`, {
    delegation_id,
    delegation_valid: !over,
  });
}

/** A body that ends before it is whole. */
export const incompleteBody = (): ErrandError =>
  new ErrandError("invalid_request", "The body is incomplete: the connection closed before its end.", {
    details: { issues: [{ path: "", reason: "is incomplete" }] },
  });
