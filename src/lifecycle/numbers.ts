/** The numbers and errors that the script works with. */
import { createHash } from "node:crypto";
import type { AgentSpec } from "../schema/agent.ts";
import type { DelegationError } from "../schema/delegation.ts";
import { ERRORS, type StoredErrorCode } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";
import { sortedJson } from "../schema/sorted-json.ts";
import type { Votes } from "../schema/votes.ts";

/** Numbers that the script uses besides the tables. */
export const NUMBERS = {
  /** The sweep first checks a waiting ticket after this long, then less and less often. */
  check_ms: 5_000,
  check_max_ms: 300_000,
  /** How long a gateway has for the pending deliveries of its move; then the sweep makes them. */
  follow_ms: 5_000,
  /** How long the id of a deleted record is refused to a late submit. */
  deleted_ms: 600_000,
  /** After releases beyond this number, the work waits for the agent's backoff. */
  free_releases: 10,
  /** After failed hand-offs beyond this number, the work waits for the agent's backoff. */
  free_handoffs: 100,
  /** Beyond this many leases, returned work is queued as new work, so that it cannot hold up other work for ever. */
  returned_leases: 100,
  /** How often workers that cannot work may return it. */
  returns: LIMITS.returns.value,
  graces: LIMITS.graces.value,
  /** For how many workers of an agent tickets are kept, and how many bytes of them for one. */
  sticky_workers: 1_000,
  sticky_bytes: 4_096,
  /** For how many conversations of an agent the last worker is remembered, at least; at most for twice as many. */
  last_workers: 5_000,
  delegation_bytes: LIMITS.delegation_bytes.value,
  delegation_events: LIMITS.delegation_events.value,
  event_bytes: LIMITS.event_bytes.value,
  children: LIMITS.children.value,
  budget_grace_ms: LIMITS.budget_grace.value * 1000,
  /** How long the sums of a day and of a month are kept. */
  spent_day_ms: 3 * 86_400_000,
  spent_month_ms: 40 * 86_400_000,
  /** Bytes of a child in the hash of what children have used. */
  spent_bytes: 128,
  usage_attempts: LIMITS.usage_attempts.value,
  progress_per_second: LIMITS.progress_per_second.value,
  pushes: LIMITS.pushes.value,
  rule_uses: LIMITS.rule_uses.value,
  /** Bytes of a delegation without bodies, with its first `kept_events` events; see docs/operations.md, Sizing. */
  kept_bytes: 4_608,
  kept_events: 4,
  /** Bytes of each further event besides its text. */
  kept_event_bytes: 512,
  /** Bytes of a settled question in its lists. */
  settled_bytes: 448,
  /** Bytes of an idempotency key that outlives its delegation, and how long after the submit it is kept, at least. */
  key_bytes: 320,
  idempotency_ms: LIMITS.idempotency_hours.value * 3_600_000,
  /**
   * How often a message is stored: in the history and in the delegation's own events. The text of other events is
   * stored less often.
   */
  event_copies: 2,
  /** A feed is kept for the retention time of its newest event, and up to this much longer. */
  feed_extra_ms: 60_000,
  /** Events that the shard's own stream keeps for live subscribers. */
  live_events: LIMITS.live_events.value,
} as const;

/** An error as a delegation stores and shows it, from the table of errors. */
export function failure(code: StoredErrorCode, message: string = ERRORS[code].title): DelegationError {
  const { category, retryable, recovery } = ERRORS[code];
  return { category, code, message, retryable, recovery };
}

/** Identifies the setting, as a number that a double holds; 0: there is none. */
export const votesMark = (votes: Votes | null): number =>
  votes === null
    ? 0
    : Number.parseInt(createHash("sha256").update(sortedJson(votes)).digest("hex").slice(0, 12), 16);

/** The numbers of an agent that the script works with, in the units it works in; stored in the agent's hash. */
export function agentNumbers(spec: AgentSpec) {
  const { limits, backoff, delivery, serial_by, sticky_seconds, votes } = spec;
  return {
    max_attempts: limits.max_attempts,
    lease_ms: Math.round(limits.lease_seconds * 1000),
    max_working: limits.max_working,
    max_waiting: limits.max_waiting,
    /** Whether what it uses in a day and a month is added up. */
    adds_up: spec.budgets === null ? null : 1,
    interrupt_ttl_ms: Math.round(limits.interrupt_ttl_seconds * 1000),
    backoff_initial_ms: backoff.initial_ms,
    backoff_factor: backoff.factor,
    backoff_max_ms: backoff.max_ms,
    backoff_jitter: backoff.jitter,
    ageing_ms: spec.priority_ageing_seconds === null ? null : spec.priority_ageing_seconds * 1000,
    serial: serial_by === "context" ? 1 : null,
    /** Which `votes` it has, so that an approval by others than the stored ones is refused. */
    votes: votes === null ? null : votesMark(votes),
    // The relays of a push agent are as good as each other.
    sticky_ms: sticky_seconds === null || delivery.mode === "push" ? null : Math.round(sticky_seconds * 1000),
  };
}
