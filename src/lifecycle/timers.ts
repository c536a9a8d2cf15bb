/**
 * Every timer of a delegation, as data. The script and the docs are generated from it. Limit: the timers of a gateway,
 * which decide nothing about a delegation, are in the files that need them; ARCHITECTURE.md lists them.
 */
import { type State, TERMINAL_STATES } from "../schema/delegation.ts";
import type { ErrorCode } from "../schema/errors.ts";
import type { NumberField } from "./fields.ts";
import { ANY, ASKED, HOLDING, LIVE, type MoveName } from "./states.ts";

/** Conditions besides the state under which a timer runs. */
export const CONDITIONS = {
  pending: "deliveries are pending, and all its events are published",
  unpublished: "an event is not published yet",
  never_leased: "it was never leased",
  leased: "a worker has it",
  fails_over_budget: "its `on_budget` is `fail`",
  asks_over_budget: "its `on_budget` is `ask`",
  attempts_left: "an attempt is left",
  attempts_spent: "no attempt is left",
  outage:
    "the instant was ahead when an outage of the broker began, less than one more period has passed since its end, and fewer than `graces` outages have extended the lease since the holder's last call",
} as const;
export type Condition = keyof typeof CONDITIONS;

export interface Timer {
  /** The record's field with the instant; `now`: the time at which the sweep looks. */
  readonly at: NumberField | "now";
  /** Added to it: the retention time, or the pause before another try. */
  readonly plus?: "retention" | "pause";
  readonly in: readonly State[];
  readonly if?: Condition;
  /** The move or the action that the sweep makes; null: none, the sweep only looks at the record again. */
  readonly does: MoveName | "deliver" | "calls" | "remove" | "check" | null;
  /** The error that the move fails with. */
  readonly code?: ErrorCode;
  readonly doc: string;
}

/**
 * Every timer of a delegation, in order of precedence: when several have passed, the first one decides. The sweep waits
 * for the soonest.
 */
export const TIMERS = [
  {
    at: "follow_at",
    in: ANY,
    if: "pending",
    does: "deliver",
    doc: "The gateway that made the move has not made its pending deliveries; the sweep does.",
  },
  {
    at: "now",
    plus: "pause",
    in: ANY,
    if: "unpublished",
    does: null,
    doc: "Its events are published as soon as a stream accepts them.",
  },
  {
    at: "finished_at",
    plus: "retention",
    in: TERMINAL_STATES,
    does: "remove",
    doc: "It is deleted after its retention time.",
  },
  {
    at: "deadline_at",
    in: LIVE,
    does: "expire",
    code: "deadline_exceeded",
    doc: "The deadline of the delegation.",
  },
  {
    at: "start_by",
    in: ["submitted"],
    if: "never_leased",
    does: "expire",
    code: "not_picked_up",
    doc: "The deadline of its first lease.",
  },
  {
    at: "interrupt_expires_at",
    in: ASKED,
    does: "expire",
    code: "interrupt_expired",
    doc: "The deadline of the answer; the error says who was notified of the question.",
  },
  {
    at: "over_at",
    in: HOLDING,
    if: "leased",
    does: "overrun",
    doc: "More was used than its budget allows.",
  },
  {
    at: "stop_at",
    in: LIVE,
    if: "fails_over_budget",
    does: "exceed",
    code: "budget_exceeded",
    doc: "More was used than its budget allows, and no worker has it, or the time that its worker had to end by itself is over.",
  },
  {
    at: "stop_at",
    in: ["submitted", "working", "awaiting_children"],
    if: "asks_over_budget",
    does: "ask_budget",
    doc: "The same, but the broker asks for a larger budget.",
  },
  {
    at: "awaits_until",
    in: ["awaiting_children"],
    does: "resume",
    doc: "The time to wait for its children is over.",
  },
  {
    at: "age_at",
    in: ["submitted"],
    does: "age",
    doc: "It has waited for the agent's `priority_ageing_seconds`, since it was queued or since the last time.",
  },
  {
    at: "check_at",
    in: ["submitted", "awaiting_children"],
    does: "check",
    doc: "The sweep checks that its ticket is in the queue, whether it is now the first in its line, or which of its children have ended; the longer it waits, the less often.",
  },
  {
    at: "confirm_by",
    in: ["working"],
    if: "outage",
    does: "grace",
    doc: "The broker was away, so the holder could not confirm the lease.",
  },
  {
    at: "confirm_by",
    in: ["working"],
    does: "unconfirm",
    doc: "The holder has not confirmed the lease by any call.",
  },
  {
    at: "lease_expires_at",
    in: HOLDING,
    if: "outage",
    does: "grace",
    doc: "The broker was away, so the holder could not extend its lease.",
  },
  {
    at: "lease_expires_at",
    in: ["working"],
    if: "attempts_left",
    does: "lapse",
    doc: "The holder has not extended its lease.",
  },
  {
    at: "lease_expires_at",
    in: ["working"],
    if: "attempts_spent",
    does: "exhaust",
    code: "attempts_exhausted",
    doc: "The same, in the last attempt.",
  },
  {
    at: "lease_expires_at",
    in: ASKED,
    does: "park_question",
    doc: "The holder of a held question has not extended its lease.",
  },
  {
    at: "calls_at",
    in: ANY,
    does: "calls",
    doc: "Queued calls to its receivers are left; the sweep queues those again that BullMQ has lost.",
  },
] as const satisfies readonly Timer[];
