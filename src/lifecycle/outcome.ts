/**
 * What the script returns: an outcome, and the record if the command asks for it. The outcomes are a closed set; a refusal
 * is an outcome, never an exception.
 */
import * as z from "zod";
import { stateSchema } from "../schema/delegation.ts";
import { LEASE_LOST_REASONS } from "../schema/lease.ts";
import { AMOUNTS } from "../schema/usage.ts";
import { MOVE_NAMES } from "./states.ts";
import type { StoredDelegation } from "./stored-delegation.ts";

const base = z.object({
  now: z.number(),
  /** The delegation of the ticket that was taken. */
  id: z.string().optional(),
  state: stateSchema.optional(),
  version: z.number().optional(),
  target: z.string().optional(),
  ticket: z.number().optional(),
  fence: z.number().optional(),
  attempt: z.number().optional(),
  created_at: z.number().optional(),
});
const live = base.required().extend({ id: z.string().optional() });

/** Events up to `seq` are undelivered; `to`: 1 the callback, 2 the push configs, 3 both. */
const pending_events = z.object({ seq: z.number(), to: z.int().min(1).max(3) });
export type PendingEvents = z.infer<typeof pending_events>;

const amount = z.number().optional();
/** Limit: amounts have 14 digits. */
const usedSchema = z.object({
  delegator: z.string(),
  currency: z.string().optional(),
  input_tokens: amount,
  output_tokens: amount,
  cached_tokens: amount,
  reasoning_tokens: amount,
  cost: amount,
});
export type Used = z.infer<typeof usedSchema>;

/** The limits of one delegation that do not reset with time. */
const CAPS = ["delegation_events", "event_bytes", "pushes", "children"] as const;

const ok = live.extend({
  kind: z.literal("ok"),
  move: z.enum(MOVE_NAMES),
  event_id: z.string().optional(),
  ready_at: z.number().optional(),
  priority: z.number().optional(),
  returned: z.boolean().optional(),
  old_ticket: z.number().optional(),
  /** True: its new ticket is in the queue. False: the queue refused it, and the caller must add it. */
  ticketed: z.boolean().optional(),
  /** For now, the new ticket is for this worker only. */
  kept_for: z.string().optional(),
  lease_expires_at: z.number().optional(),
  /**
   * The move only extended the lease: the delegation is at a limit, or memory is short, so the progress was dropped.
   */
  progress_dropped: z.literal(true).optional(),
  /** Of the move `await`: how many children must still end, and when it no longer waits. */
  awaits_left: z.number().optional(),
  awaits_until: z.number().optional(),
  /** Its children must be canceled, in the name of this principal. */
  cascade: z.string().optional(),
  /** Also what is under children that keep theirs, and under children that have ended. */
  cascade_all: z.literal(1).optional(),
  /** The children must be marked as expected; the fence of the lease that began to wait. */
  expecting: z.number().optional(),
  /** The parent that waits for its end. */
  reports_to: z.string().optional(),
  /** The parent to which it reports what its tree has used, and that sum as the script writes it. */
  spends_to: z.string().optional(),
  spent: z.string().optional(),
  /** Of a move that extends the lease: the stored budget, and when it stops the work. */
  budget: z.string().optional(),
  stop_at: z.number().optional(),
  /** When the gateway's claim on the pending deliveries ends, unless it is extended; then the sweep makes them. */
  claimed_until: z.number().optional(),
  pending_events: pending_events.optional(),
  /** What the move's report adds to the usage of its delegation, and whose delegation it is. */
  used: usedSchema.optional(),
  /** Of the move `use`: JSON text of the answers to the question. */
  answers: z.string().optional(),
  /** With a lease: the answers to `auth` questions, as the script stores them; only for the holder. */
  secrets: z.array(z.string()).optional(),
  /** It made no ticket: it waits for the end of this delegation, which is before it in the line of its conversation. */
  behind: z.string().optional(),
});

export const outcomeSchema = z.discriminatedUnion("kind", [
  ok.extend({
    /** The next one in the line of its conversation, which is now the first. */
    admitted: ok.extend({ id: z.string() }).optional(),
  }),
  base.extend({ kind: z.literal("missing") }),
  base.extend({ kind: z.literal("no_agent") }),
  /** The agent was deleted, and a new one has its name. */
  base.extend({ kind: z.literal("other_agent") }),
  base.extend({ kind: z.literal("full") }),
  /** The delegator's delegations in this shard keep `kept` bytes; with this one they would keep more than `max_kept`. */
  base.extend({ kind: z.literal("share"), kept: z.number(), max_kept: z.number() }),
  live.extend({ kind: z.literal("exists") }),
  live.extend({ kind: z.literal("state") }),
  live.extend({
    kind: z.literal("lease"),
    reason: z.enum(LEASE_LOST_REASONS).optional(),
    /** The lease has lapsed, and its holder may have it again: the move `reclaim`. */
    reclaimable: z.literal(true).optional(),
  }),
  live.extend({ kind: z.literal("no_lease") }),
  live.extend({
    kind: z.literal("duplicate"),
    interrupt_id: z.string().optional(),
    /** With a repeated chunk, or a question that is held. */
    lease_expires_at: z.number().optional(),
  }),
  /** The last chunk has the same `chunk_id` but another body. */
  live.extend({ kind: z.literal("chunk") }),
  /** Already answered. `answers`: JSON text of the answers; `interrupt_id`: the id under which they are stored. */
  live.extend({ kind: z.literal("answered"), answers: z.string(), interrupt_id: z.string() }),
  /** The rules that it answers by do not hold any more, or others were created. */
  live.extend({ kind: z.literal("rules_changed") }),
  /** The agent's `votes` are others than the gateway read. */
  live.extend({ kind: z.literal("votes_changed") }),
  /** Others have approved another answer. */
  live.extend({ kind: z.literal("other_votes") }),
  /** Another call has used the answer. */
  live.extend({ kind: z.literal("used") }),
  live.extend({ kind: z.literal("redriven"), redriven_as: z.string() }),
  live.extend({
    kind: z.literal("pending"),
    cascade: z.string().optional(),
    cascade_all: z.literal(1).optional(),
    expecting: z.number().optional(),
    reports_to: z.string().optional(),
    spends_to: z.string().optional(),
    spent: z.string().optional(),
    claimed_until: z.number().optional(),
    pending_events: pending_events.optional(),
    /** Queued calls may have lost their jobs; when the sweep looks again. */
    calls_at: z.number().optional(),
  }),
  /** The delegation has a result schema, and the command does not say that the result fits it. */
  live.extend({ kind: z.literal("unchecked") }),
  live.extend({ kind: z.literal("ticket") }),
  live.extend({ kind: z.literal("not_ready"), ready_at: z.number() }),
  /** More was used than its budget allows: the sweep stops it, or asks for a larger budget. */
  live.extend({ kind: z.literal("over_budget") }),
  /** It waits in the line of its conversation; of the move `admit`: or was admitted before. */
  live.extend({ kind: z.literal("behind") }),
  base.extend({ kind: z.literal("blocked"), why: z.enum(["paused", "max_working"]) }),
  /** No ticket is ready; when the next delayed one is due, ms by Redis' own clock. */
  base.extend({ kind: z.literal("empty"), next_due_at: z.number().optional() }),
  live.extend({ kind: z.literal("no_question") }),
  live.extend({ kind: z.literal("attempts") }),
  /** The command names a delegation that is no child. */
  live.extend({ kind: z.literal("not_children") }),
  /** This wait has timed out as often as the command's `round`. */
  live.extend({ kind: z.literal("waited"), lease_expires_at: z.number().optional() }),
  /** The child is not waited for, or its end is known. */
  live.extend({ kind: z.literal("not_awaited") }),
  /**
   * Nobody answered the open question in time, and the command did not say whom the failure names as notified. `needed`,
   * `given`: its approvals.
   */
  live.extend({
    kind: z.literal("unanswered"),
    code: z.enum(["interrupt_expired", "deadline_exceeded"]),
    interrupt_id: z.string(),
    open_ms: z.number(),
    needed: z.number().optional(),
    given: z.number().optional(),
  }),
  live.extend({ kind: z.literal("not_due") }),
  live.extend({ kind: z.literal("check") }),
  /** Its parent ended, and canceled its children, before it was created. */
  base.extend({ kind: z.literal("tombstone") }),
  base.extend({ kind: z.literal("too_large") }),
  /** Memory is short, and the move would use more. */
  base.extend({ kind: z.literal("memory") }),
  /** The delegation has reached this limit. */
  live.extend({ kind: z.literal("limit"), limit: z.enum(CAPS) }),
  live.extend({ kind: z.literal("pace") }),
  /** The lease reported more before. */
  live.extend({
    kind: z.literal("usage_shrinks"),
    amount: z.enum(AMOUNTS),
    before: z.number(),
    reported: z.number(),
  }),
  /** The delegation's costs so far are in this currency; `of_budget`: a budget here or above is. */
  live.extend({
    kind: z.literal("usage_currency"),
    currency: z.string(),
    of_budget: z.boolean().optional(),
  }),
  live.extend({ kind: z.literal("removed") }),
  /** Another gateway has taken over the pending deliveries, or made them. */
  live.extend({ kind: z.literal("taken_over") }),
  /** Before the record can be deleted, the idempotency key with this name must be retired. */
  live.extend({ kind: z.literal("retire_key"), idempotency: z.string() }),
  /** This id cannot be used: another body took its idempotency key. */
  base.extend({ kind: z.literal("voided") }),
  /** The delegation of this id was deleted. */
  base.extend({ kind: z.literal("deleted") }),
]);
export type Outcome = z.infer<typeof outcomeSchema>;
export type Moved = Extract<Outcome, { kind: "ok" }>;

export interface Result {
  readonly outcome: Outcome;
  /**
   * The record, if the command asked for it and it exists. If the taker leased this very delegation, it is the record
   * after the lease.
   */
  readonly record: StoredDelegation | null;
  /** JSON texts of the follow-ups that the holder has not seen, oldest first; only with moves that extend its lease. */
  readonly unseen: readonly string[];
  /** The result of the taker's lease; absent if the command made no ticket that is ready. */
  readonly taken?: Result;
}

/** What the script returns for a command; lua/outcome.lua has its layout. */
export type Reply = readonly [json: string, record: string, lists: ReplyLists, taken?: readonly unknown[]];

type Texts = readonly string[];
/** History, artifacts, unseen follow-ups; nothing if all three are empty. */
type ReplyLists = readonly [] | readonly [history: Texts, artifacts: Texts, unseen: Texts];

/**
 * The answer comes from our own script, so a schema checks only the outcome, and the lists are only checked to be lists.
 */
export function isReply(answer: unknown): answer is Reply {
  if (!Array.isArray(answer) || answer.length < 3 || answer.length > 4) return false;
  const [json, record, lists, taken = []]: unknown[] = answer;
  return (
    typeof json === "string" && typeof record === "string" && Array.isArray(lists) && Array.isArray(taken)
  );
}
