/**
 * The rules of a delegation's life, as data: moves and guards (timers.ts has the timers). The script, the verbs, the
 * tests and the docs are derived from them. One table, so it is long. Limit: it says which guards and effects a move
 * has; lua/ implements them.
 */
import { LIVE_STATES, type State, TERMINAL_STATES } from "../schema/delegation.ts";
import type { EventType } from "../schema/event.ts";
import type { LeaseLostReason } from "../schema/lease.ts";

/**
 * The actors of moves: `anyone` any principal that may delegate · `delegator`, `approver`, `operator` these principals
 * · `agent` the holder of the lease, or an operator in its place · `gateway` a gateway of its own accord · `sweep` the
 * sweep, for timers that have passed (timers.ts) and for repairs.
 */
type Actor = "anyone" | "delegator" | "approver" | "operator" | "agent" | "gateway" | "sweep";

/** Conditions of moves besides the state; lua/guards.lua, lua/limits.lua and lua/lazy check them. */
export const GUARDS = {
  unused: "nothing is stored under its id",
  agent:
    "its target exists, is not being deleted and, if the command says when it was created, is that agent",
  parent: "its parent, if it names one, has not ended and canceled its children",
  room: "the target's queue is not full",
  holder: "the caller's lease is the newest, and it has not ended",
  lapsed: "the caller's lease is the newest, it expired, and nothing was leased since",
  ticket: "the ticket is the record's newest",
  first: "with `serial_by`, it is the first in the line of its conversation: everything before it has ended",
  ready: "the ticket is ready: its delay or backoff has ended",
  in_budget: "its budget is not exceeded",
  not_blocked: "the target is neither paused nor at max_working",
  open_question: "it is the question that is open now",
  unanswered: "the question was not answered before",
  rules:
    "if it is answered by rules, these are as the gateway read them, not ended, and the agent takes them",
  votes:
    "if it approves something, the gateway read the agent's `votes` as they are now, and this person has not approved the same yet",
  answered: "the request was answered, and no other call has used the answer",
  new_message: "the message was not stored before",
  not_redriven: "it was not redriven before",
  claim: "the caller's claim on the pending deliveries, if it names one, is still valid",
  push_slot: "its push configs are below their limit",
  child_slot: "its children are below their limit",
  due: "its timer has passed",
  attempts_left: "an attempt is left",
  attempts_spent: "no attempt is left",
  new_wait:
    "the command names children only and, if it has a `round`, fewer waits like this one have timed out",
  awaited: "the child is waited for and was not counted; a time limit needs none",
  result: "if the delegation has a result schema, a gateway has checked the result",
  quota: "its events are below their limits in number and bytes",
  pace: "its updates within this second are below their limit",
} as const;
export type Guard = keyof typeof GUARDS;
/** Checked for every move. */
export const EVERY_MOVE = {
  size: "its message, history, artifacts and reply stay within their common limit",
  share: "its delegator's delegations stay within their share of the memory",
} as const;

export interface Move {
  readonly from: readonly State[];
  /** The next state; empty: the state stays; two: the command says which. */
  readonly to: readonly State[];
  readonly by: readonly Actor[];
  /**
   * The effect on the lease. `grace`: it gets one more period from the end of an outage of the broker. `reclaim`: its
   * former holder has it again, for its full period.
   */
  readonly lease: "none" | "grant" | "extend" | "grace" | "reclaim" | "drop";
  /** With `drop`: the reason that the former holder gets. */
  readonly lease_lost_reason?: LeaseLostReason;
  readonly requires: readonly Guard[];
  /** The event that it writes; null: none, and the version stays. */
  readonly event: EventType | null;
  readonly status?: string;
  /** With `drop`: the holder may reclaim the lease until another one is granted. */
  readonly reclaimable?: true;
  /** The effect on the agent's queue: it gets a new ticket, the lease consumes one, or the ticket moves up. */
  readonly queue?: "ticket" | "consume_ticket" | "raise_ticket";
  /** Removes the old ticket, which may still be in the queue, or was taken by a process that died before the lease. */
  readonly removes_old_ticket?: true;
  /**
   * When the new ticket is ready. Absent: at once. `asked`: after the delay of the request. `backoff`: after the
   * agent's backoff. `release`: after the delay of the request; `handoff`: at once; after many releases or failed
   * hand-offs, both wait at least for the agent's backoff. `unchanged`: at the same time as the old ticket.
   */
  readonly delay?: "asked" | "backoff" | "release" | "handoff" | "unchanged";
  /** The delegation is queued before new work of its priority. */
  readonly returned?: true;
  /** For a while, only the worker that had the lease gets the new ticket, if it asked for that. */
  readonly sticky?: true;
  /** It ends the delegation without its agent's reply, so the task at a push agent's A2A server must be canceled. */
  readonly cancels_remote_task?: true;
  /** The move costs an attempt. */
  readonly spends?: true;
  /** Below the event limit, the move gives back the attempt that the end of the lease cost. */
  readonly refunds?: true;
  /**
   * Drops the artifacts, so that the next worker starts from scratch: all, what this lease sent (`own`), or all if the
   * lease before lapsed (`lapsed`), because until then it could be reclaimed.
   */
  readonly drops_artifacts?: "all" | "own" | "lapsed";
  /** The messages of the command are not stored: those of a repeated question are stored already. */
  readonly repeats?: true;
  /** Only its event shows the messages, artifacts and fields of the command; the record does not keep them. */
  readonly event_only?: true;
  /** If the command says `retryable` and an attempt is left, this move replaces it. */
  readonly retry_as?: "retry";
  /** Beyond the `quota`, this move, which writes no event, replaces it. */
  readonly degrades_to?: "heartbeat";
  /** The move that replaces this one while the open question is held. A command that names another question is not replaced. */
  readonly held_as?: "hand_over" | "park_question";
  /** The move that replaces this one if the command denies the broker's question for a larger budget. */
  readonly denied_as?: "deny_budget";
  /** The move that replaces this one if the agent's `votes` need more approvals than there are with this one. */
  readonly voted_as?: "vote";
  /** The move that replaces this one if it is the last end of a child that is waited for. */
  readonly last_as?: "resume";
  /**
   * Beyond the event limit, the move costs an attempt; if none is left, this move replaces it. It also replaces a return
   * by a worker that cannot work, beyond the limit of returns.
   */
  readonly gives_up_as?: "give_up";
  /**
   * Whether it needs memory: `new` work is refused from 75 % of maxmemory, a move that `grows` a delegation from 90 %.
   * Absent: it ends, frees, returns or leases work, and is always accepted.
   */
  readonly memory?: "new" | "grows";
  readonly doc: string;
}

export const LIVE: readonly State[] = LIVE_STATES;
export const ASKED: readonly State[] = ["input_required", "auth_required"];
/** In which there may be a lease. A question is held while its asker has one. */
export const HOLDING: readonly State[] = ["working", ...ASKED];
export const ANY: readonly State[] = [...LIVE_STATES, ...TERMINAL_STATES];

export const MOVES = {
  submit: {
    from: [],
    to: ["submitted"],
    by: ["anyone"],
    lease: "none",
    requires: ["unused", "agent", "parent", "room"],
    event: "DELEGATION_SENT",
    queue: "ticket",
    delay: "asked",
    memory: "new",
    doc: "The broker accepted it; from here on it cannot be lost.",
  },
  message: {
    from: ["submitted", "working", "awaiting_children"],
    to: [],
    by: ["delegator", "approver", "operator"],
    lease: "none",
    requires: ["new_message", "quota"],
    event: "DELEGATION_STATUS",
    status: "message",
    memory: "grows",
    doc: "A follow-up for the agent, stored in the history.",
  },
  lease: {
    from: ["submitted"],
    to: ["working"],
    by: ["agent"],
    lease: "grant",
    requires: ["ticket", "ready", "in_budget", "not_blocked", "first"],
    event: "DELEGATION_STATUS",
    status: "leased",
    queue: "consume_ticket",
    drops_artifacts: "lapsed",
    doc: "A worker leases it; it has one lease at a time.",
  },
  reclaim: {
    from: ["submitted"],
    to: ["working"],
    by: ["agent"],
    lease: "reclaim",
    requires: ["lapsed"],
    event: "DELEGATION_STATUS",
    status: "reclaimed",
    queue: "consume_ticket",
    refunds: true,
    removes_old_ticket: true,
    doc: "The holder of a lapsed lease calls again before another worker has the work. The agent may be paused or at max_working.",
  },
  heartbeat: {
    from: HOLDING,
    to: [],
    by: ["agent"],
    lease: "extend",
    requires: ["holder"],
    event: null,
    doc: "The holder is alive.",
  },
  progress: {
    from: HOLDING,
    to: [],
    by: ["agent"],
    lease: "extend",
    requires: ["holder", "quota", "pace"],
    event: "DELEGATION_STATUS",
    status: "progress",
    degrades_to: "heartbeat",
    memory: "grows",
    doc: "The holder reports progress.",
  },
  artifact: {
    from: HOLDING,
    to: [],
    by: ["agent"],
    lease: "extend",
    requires: ["holder", "quota", "pace"],
    event: "DELEGATION_STATUS",
    status: "artifact",
    memory: "grows",
    doc: "The holder sends output before its reply.",
  },
  interrupt: {
    from: ["working"],
    to: ASKED,
    by: ["agent"],
    lease: "drop",
    lease_lost_reason: "interrupted",
    requires: ["holder", "unanswered", "rules", "votes", "quota"],
    event: "DELEGATION_STATUS",
    status: "interrupted",
    held_as: "park_question",
    memory: "grows",
    doc: "The agent needs input or a credential; the delegation waits for the answer.",
  },
  hold: {
    from: ["working"],
    to: ASKED,
    by: ["agent"],
    lease: "extend",
    requires: ["holder", "unanswered", "rules", "votes", "quota"],
    event: "DELEGATION_STATUS",
    status: "interrupted",
    memory: "grows",
    doc: "The same as `interrupt`, but the holder keeps its lease and waits: the question is held.",
  },
  park_question: {
    from: ASKED,
    to: [],
    by: ["agent", "sweep"],
    lease: "drop",
    lease_lost_reason: "interrupted",
    requires: ["holder"],
    event: "DELEGATION_STATUS",
    status: "parked",
    repeats: true,
    doc: "The holder of a held question no longer waits, or its lease expired; the question stays open. This costs no attempt.",
  },
  ask_people: {
    from: ASKED,
    to: [],
    by: ["gateway"],
    lease: "none",
    requires: ["open_question"],
    event: "DELEGATION_STATUS",
    status: "interrupted",
    repeats: true,
    doc: "The broker was to answer the question at once, and could not; now people are asked.",
  },
  answer: {
    from: ASKED,
    to: ["submitted"],
    by: ["delegator", "approver", "operator"],
    lease: "drop",
    lease_lost_reason: "interrupted",
    requires: ["open_question", "rules", "votes"],
    event: "DELEGATION_STATUS",
    status: "answered",
    queue: "ticket",
    returned: true,
    sticky: true,
    held_as: "hand_over",
    denied_as: "deny_budget",
    voted_as: "vote",
    doc: "The question is answered; any worker of the agent may continue, for a while only the one that asked if it wished so.",
  },
  hand_over: {
    from: ASKED,
    to: ["working"],
    by: ["delegator", "approver", "operator"],
    lease: "none",
    requires: ["open_question", "rules", "votes"],
    event: "DELEGATION_STATUS",
    status: "answered",
    doc: "The held question is answered; the holder of the lease continues.",
  },
  vote: {
    from: ASKED,
    to: [],
    by: ["delegator", "approver", "operator"],
    lease: "none",
    requires: ["open_question", "rules", "votes", "quota"],
    event: "DELEGATION_STATUS",
    status: "voted",
    memory: "grows",
    doc: "One of several people approves; the question stays open for the others.",
  },
  use: {
    from: HOLDING,
    to: [],
    by: ["agent"],
    lease: "extend",
    requires: ["holder", "answered"],
    event: null,
    doc: "The holder takes an answer for one use, which no other call gets.",
  },
  await: {
    from: ["working"],
    to: ["awaiting_children"],
    by: ["agent"],
    lease: "drop",
    lease_lost_reason: "awaiting",
    requires: ["holder", "new_wait", "quota"],
    event: "DELEGATION_STATUS",
    status: "awaiting",
    doc: "The holder gives the work back until children of it have ended; nobody holds a lease meanwhile.",
  },
  child_ended: {
    from: ["awaiting_children"],
    to: [],
    by: ["gateway", "sweep"],
    lease: "none",
    requires: ["awaited"],
    event: null,
    last_as: "resume",
    doc: "A child that it waits for has ended, and others must end, too.",
  },
  resume: {
    from: ["awaiting_children"],
    to: ["submitted"],
    by: ["gateway", "sweep"],
    lease: "none",
    requires: ["awaited"],
    event: "DELEGATION_STATUS",
    status: "resumed",
    queue: "ticket",
    returned: true,
    doc: "The children that it waits for have ended, or the time limit passed; any worker of the agent continues.",
  },
  expect: {
    from: LIVE,
    to: [],
    by: ["gateway", "sweep"],
    lease: "none",
    requires: [],
    event: null,
    doc: "Its parent waits for its end, which the gateway then reports to the parent.",
  },
  release: {
    from: ["working"],
    to: ["submitted"],
    by: ["agent"],
    lease: "drop",
    lease_lost_reason: "released",
    requires: ["holder"],
    event: "DELEGATION_STATUS",
    status: "released",
    queue: "ticket",
    delay: "release",
    returned: true,
    drops_artifacts: "all",
    gives_up_as: "give_up",
    held_as: "park_question",
    doc: "The holder returns it unfinished. Below the event limit this costs no attempt.",
  },
  unconfirm: {
    from: ["working"],
    to: ["submitted"],
    by: ["gateway", "sweep"],
    lease: "drop",
    lease_lost_reason: "released",
    requires: ["holder"],
    event: "DELEGATION_STATUS",
    status: "released",
    queue: "ticket",
    delay: "handoff",
    returned: true,
    drops_artifacts: "own",
    gives_up_as: "give_up",
    removes_old_ticket: true,
    doc: "The lease never reached its holder. Below the event limit this costs no attempt.",
  },
  grace: {
    from: HOLDING,
    to: [],
    by: ["sweep"],
    lease: "grace",
    requires: ["due"],
    event: "DELEGATION_STATUS",
    status: "broker_away",
    doc: "The broker was away when the lease, or the time to confirm it, ended. This costs no attempt.",
  },
  give_up: {
    from: ["working"],
    to: ["failed"],
    by: ["agent", "gateway", "sweep"],
    lease: "drop",
    lease_lost_reason: "released",
    requires: ["holder"],
    event: "DELEGATION_FAILED",
    removes_old_ticket: true,
    cancels_remote_task: true,
    doc: "It is released beyond the event limit, and no attempt is left; or too many workers returned it because they could not work.",
  },
  lapse: {
    from: ["working"],
    to: ["submitted"],
    by: ["sweep"],
    lease: "drop",
    lease_lost_reason: "expired",
    requires: ["due", "attempts_left"],
    event: "DELEGATION_STATUS",
    status: "lease_expired",
    reclaimable: true,
    queue: "ticket",
    delay: "backoff",
    spends: true,
    removes_old_ticket: true,
    doc: "The lease expired, and an attempt is left.",
  },
  exhaust: {
    from: ["working"],
    to: ["failed"],
    by: ["sweep"],
    lease: "drop",
    lease_lost_reason: "expired",
    requires: ["due", "attempts_spent"],
    event: "DELEGATION_FAILED",
    removes_old_ticket: true,
    cancels_remote_task: true,
    doc: "The lease of the last attempt expired.",
  },
  retry: {
    from: HOLDING,
    to: ["submitted"],
    by: ["agent"],
    lease: "drop",
    lease_lost_reason: "retried",
    requires: ["holder", "attempts_left"],
    event: "DELEGATION_STATUS",
    status: "retrying",
    queue: "ticket",
    delay: "backoff",
    spends: true,
    drops_artifacts: "all",
    event_only: true,
    doc: "The agent failed and says that a retry can help.",
  },
  complete: {
    from: HOLDING,
    to: ["completed"],
    by: ["agent"],
    lease: "drop",
    lease_lost_reason: "finished",
    requires: ["holder", "result"],
    event: "DELEGATION_COMPLETE",
    doc: "The agent's reply.",
  },
  reject: {
    from: HOLDING,
    to: ["rejected"],
    by: ["agent"],
    lease: "drop",
    lease_lost_reason: "finished",
    requires: ["holder"],
    event: "DELEGATION_FAILED",
    doc: "The agent rejects the work.",
  },
  fail: {
    from: HOLDING,
    to: ["failed"],
    by: ["agent"],
    lease: "drop",
    lease_lost_reason: "finished",
    requires: ["holder"],
    event: "DELEGATION_FAILED",
    retry_as: "retry",
    doc: "The agent failed for good, or no attempt is left.",
  },
  expire: {
    from: LIVE,
    to: ["failed"],
    by: ["sweep"],
    lease: "drop",
    lease_lost_reason: "expired",
    requires: ["due"],
    event: "DELEGATION_FAILED",
    removes_old_ticket: true,
    cancels_remote_task: true,
    doc: "A deadline passed: of the delegation, of its first lease, or of an answer.",
  },
  spend: {
    from: ANY,
    to: [],
    by: ["gateway", "sweep"],
    lease: "none",
    requires: [],
    event: null,
    doc: "A child reports what its tree has used so far.",
  },
  overrun: {
    from: HOLDING,
    to: [],
    by: ["sweep"],
    lease: "none",
    requires: ["due"],
    event: "DELEGATION_STATUS",
    status: "over_budget",
    doc: "More was used than its budget allows; its worker has some time to end by itself.",
  },
  exceed: {
    from: LIVE,
    to: ["failed"],
    by: ["sweep"],
    lease: "drop",
    lease_lost_reason: "over_budget",
    requires: ["due"],
    event: "DELEGATION_FAILED",
    removes_old_ticket: true,
    cancels_remote_task: true,
    doc: "The time that its worker had to end by itself is over; everything under it is canceled, too.",
  },
  ask_budget: {
    from: ["submitted", "working", "awaiting_children"],
    to: ASKED,
    by: ["sweep"],
    lease: "drop",
    lease_lost_reason: "over_budget",
    requires: ["due"],
    event: "DELEGATION_STATUS",
    status: "interrupted",
    removes_old_ticket: true,
    cancels_remote_task: true,
    doc: "More was used than its budget allows, and the broker asks for a larger one; what is under it goes on.",
  },
  deny_budget: {
    from: ASKED,
    to: ["failed"],
    by: ["delegator", "approver", "operator"],
    lease: "drop",
    lease_lost_reason: "over_budget",
    requires: ["open_question", "rules"],
    event: "DELEGATION_FAILED",
    doc: "The broker's question for a larger budget is denied; everything under it is canceled, too.",
  },
  cancel: {
    from: LIVE,
    to: ["canceled"],
    by: ["delegator", "approver", "operator", "agent"],
    lease: "drop",
    lease_lost_reason: "canceled",
    requires: [],
    event: "DELEGATION_FAILED",
    removes_old_ticket: true,
    cancels_remote_task: true,
    doc: "It is no longer wanted; the holder of its lease is notified at once.",
  },
  cascade: {
    from: TERMINAL_STATES,
    to: [],
    by: ["delegator", "approver", "operator", "gateway"],
    lease: "none",
    requires: [],
    event: null,
    doc: "A second cancel cancels the children, too, which the first one did not; and so does a budget above that is exceeded.",
  },
  adopt: {
    from: LIVE,
    to: [],
    by: ["anyone"],
    lease: "none",
    requires: ["child_slot"],
    event: null,
    memory: "grows",
    doc: "A child is about to be delegated under it, so that the end of the parent reaches the child.",
  },
  redrive: {
    from: ["failed"],
    to: [],
    by: ["delegator", "operator"],
    lease: "none",
    requires: ["not_redriven"],
    event: null,
    doc: "It is delegated again; the record keeps the id of the new one, so a second redrive returns it.",
  },
  follow_up: {
    from: ANY,
    to: [],
    by: ["gateway", "sweep"],
    lease: "none",
    requires: ["claim"],
    event: null,
    doc: "Pending deliveries (marking and canceling its children, reporting its end, its events to callbacks and push configs) are done, or claimed for longer.",
  },
  push: {
    from: ANY,
    to: [],
    by: ["delegator", "operator"],
    lease: "none",
    requires: ["push_slot"],
    event: null,
    memory: "grows",
    doc: "Its events are POSTed to a URL from now on; for a finished delegation, the last one.",
  },
  reticket: {
    from: ["submitted"],
    to: [],
    by: ["sweep"],
    lease: "none",
    requires: ["ticket", "first"],
    event: null,
    queue: "ticket",
    delay: "unchanged",
    removes_old_ticket: true,
    doc: "Its ticket was lost; a new one replaces it.",
  },
  admit: {
    from: ["submitted"],
    to: [],
    by: ["gateway", "sweep"],
    lease: "none",
    requires: ["first"],
    event: "DELEGATION_STATUS",
    status: "admitted",
    queue: "ticket",
    doc: "The one before it in the line of its conversation has ended, in the same step; it waits for a worker now.",
  },
  age: {
    from: ["submitted"],
    to: [],
    by: ["sweep"],
    lease: "none",
    requires: ["due"],
    event: null,
    queue: "raise_ticket",
    doc: "It has waited so long that it is queued as if its priority were one higher.",
  },
} as const satisfies Record<string, Move>;

export type MoveName = keyof typeof MOVES;
export const MOVE_NAMES = Object.keys(MOVES).filter((name): name is MoveName => name in MOVES);
