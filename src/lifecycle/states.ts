/**
 * The state table: every move of a delegation, as data. The script, the verbs, the tests and the docs
 * read it from here. Limit: what a guard or an effect does is in transition.lua; this says which apply.
 */
import { LIVE_STATES, type State, TERMINAL_STATES } from "../schema/delegation.ts";
import type { EventType } from "../schema/event.ts";
import type { LeaseLostReason } from "../schema/lease.ts";

/** Who may ask for a move. The doors check principals; `gateway` and `sweep` are the broker itself. */
type Actor = "door" | "delegator" | "approver" | "operator" | "agent" | "stitcher" | "gateway" | "sweep";

/**
 * What must hold beside the state, checked inside the script:
 * `unused` no record has this id · `holder` the caller's lease is the living one · `ticket` the ticket is
 * the record's newest · `ready` its time has come · `open` neither paused nor at max_working ·
 * `interrupt` this question is the open one · `due` its time is up · `attempts_left` / `attempts_spent` ·
 * `quota` its events are below their limits in number and bytes · `pace` and below the limit of this second.
 */
export type Guard =
  | "unused"
  | "holder"
  | "ticket"
  | "ready"
  | "open"
  | "interrupt"
  | "due"
  | "attempts_left"
  | "attempts_spent"
  | "quota"
  | "pace";

export interface Move {
  readonly from: readonly State[];
  /** Where it leads; empty: the state stays. Two: the command says which. */
  readonly to: readonly State[];
  readonly by: readonly Actor[];
  /** What happens to the lease; `drop` remembers `ends`, the reason its holder is told. */
  readonly lease: "none" | "grant" | "extend" | "drop";
  readonly ends?: LeaseLostReason;
  readonly requires: readonly Guard[];
  /** The event it leaves; null: none, and the version stays. */
  readonly event: EventType | null;
  readonly status?: string;
  /** What the queue does next: a new ticket, or the old one dropped. */
  readonly queue?: "ticket" | "drop_ticket" | "consume_ticket";
  /**
   * When the new ticket is due: at once, as asked, or after the agent's backoff. Releases and failed hand-offs back off
   * only after many.
   */
  readonly delay?: "asked" | "backoff" | "release" | "handoff";
  /** Goes back before new work of its priority. */
  readonly returned?: true;
  /** Costs an attempt. */
  readonly spends?: true;
  /** Drops the artifacts that were sent so far: whoever works next starts anew. */
  readonly forgets?: true;
  /** Beyond its `quota` this move takes its place, which writes no event. */
  readonly degrades_to?: "heartbeat";
  /** Beyond the event limit it spends an attempt; when none is left, this move takes its place. */
  readonly worn_out?: "give_up";
  /**
   * Whether it takes memory: `new` work is refused from 75 % of maxmemory on, a move that `grows` a delegation from 90 %
   * on. Absent: it ends, frees, returns or leases work, and is always accepted.
   */
  readonly memory?: "new" | "grows";
  readonly doc: string;
}

const LIVE: readonly State[] = LIVE_STATES;
const ASKED: readonly State[] = ["input_required", "auth_required"];
const ANY: readonly State[] = [...LIVE_STATES, ...TERMINAL_STATES];

export const MOVES = {
  submit: {
    from: [],
    to: ["submitted"],
    by: ["door"],
    lease: "none",
    requires: ["unused"],
    event: "DELEGATION_SENT",
    queue: "ticket",
    delay: "asked",
    memory: "new",
    doc: "A door accepted it; from here it can not be lost.",
  },
  message: {
    from: ["submitted", "working"],
    to: [],
    by: ["delegator", "approver", "operator"],
    lease: "none",
    requires: ["quota"],
    event: "DELEGATION_STATUS",
    status: "message",
    memory: "grows",
    doc: "A follow-up for the agent, kept in the history.",
  },
  lease: {
    from: ["submitted"],
    to: ["working"],
    by: ["agent"],
    lease: "grant",
    requires: ["ticket", "ready", "open"],
    event: "DELEGATION_STATUS",
    status: "leased",
    queue: "consume_ticket",
    doc: "A worker took it; exactly one lease lives.",
  },
  heartbeat: {
    from: ["working"],
    to: [],
    by: ["agent"],
    lease: "extend",
    requires: ["holder"],
    event: null,
    doc: "The holder is alive.",
  },
  progress: {
    from: ["working"],
    to: [],
    by: ["agent"],
    lease: "extend",
    requires: ["holder", "quota", "pace"],
    event: "DELEGATION_STATUS",
    status: "progress",
    degrades_to: "heartbeat",
    memory: "grows",
    doc: "The holder says how far it is.",
  },
  artifact: {
    from: ["working"],
    to: [],
    by: ["agent"],
    lease: "extend",
    requires: ["holder", "quota", "pace"],
    event: "DELEGATION_STATUS",
    status: "artifact",
    memory: "grows",
    doc: "A piece of output, before the reply.",
  },
  interrupt: {
    from: ["working"],
    to: ASKED,
    by: ["agent"],
    lease: "drop",
    ends: "interrupted",
    requires: ["holder", "quota"],
    event: "DELEGATION_STATUS",
    status: "interrupted",
    memory: "grows",
    doc: "The agent needs input or a credential; the delegation is parked.",
  },
  answer: {
    from: ASKED,
    to: ["submitted"],
    by: ["delegator", "approver", "operator"],
    lease: "none",
    requires: ["interrupt"],
    event: "DELEGATION_STATUS",
    status: "answered",
    queue: "ticket",
    returned: true,
    doc: "The question is answered; any worker of the agent may go on.",
  },
  release: {
    from: ["working"],
    to: ["submitted"],
    by: ["agent"],
    lease: "drop",
    ends: "released",
    requires: ["holder"],
    event: "DELEGATION_STATUS",
    status: "released",
    queue: "ticket",
    delay: "release",
    returned: true,
    forgets: true,
    worn_out: "give_up",
    doc: "The holder gives it back; no attempt is spent, but beyond the event limit.",
  },
  unconfirm: {
    from: ["working"],
    to: ["submitted"],
    by: ["gateway", "sweep"],
    lease: "drop",
    ends: "released",
    requires: ["holder"],
    event: "DELEGATION_STATUS",
    status: "released",
    queue: "ticket",
    delay: "handoff",
    returned: true,
    forgets: true,
    worn_out: "give_up",
    doc: "The lease never reached its holder; no attempt is spent, but beyond the event limit.",
  },
  give_up: {
    from: ["working"],
    to: ["failed"],
    by: ["agent", "gateway", "sweep"],
    lease: "drop",
    ends: "released",
    requires: ["holder", "attempts_spent"],
    event: "DELEGATION_FAILED",
    doc: "It was given back beyond the event limit, and no attempt is left.",
  },
  lapse: {
    from: ["working"],
    to: ["submitted"],
    by: ["sweep"],
    lease: "drop",
    ends: "expired",
    requires: ["due", "attempts_left"],
    event: "DELEGATION_STATUS",
    status: "lease_expired",
    queue: "ticket",
    delay: "backoff",
    spends: true,
    forgets: true,
    doc: "The holder went silent past its lease.",
  },
  exhaust: {
    from: ["working"],
    to: ["failed"],
    by: ["sweep"],
    lease: "drop",
    ends: "expired",
    requires: ["due", "attempts_spent"],
    event: "DELEGATION_FAILED",
    doc: "The last attempt's holder went silent.",
  },
  retry: {
    from: ["working"],
    to: ["submitted"],
    by: ["stitcher"],
    lease: "drop",
    ends: "retried",
    requires: ["holder", "attempts_left"],
    event: "DELEGATION_STATUS",
    status: "retrying",
    queue: "ticket",
    delay: "backoff",
    spends: true,
    forgets: true,
    doc: "The agent failed, says that it may go better, and attempts are left.",
  },
  complete: {
    from: ["working"],
    to: ["completed"],
    by: ["stitcher"],
    lease: "drop",
    ends: "finished",
    requires: ["holder"],
    event: "DELEGATION_COMPLETE",
    doc: "The agent's reply.",
  },
  reject: {
    from: ["working"],
    to: ["rejected"],
    by: ["stitcher"],
    lease: "drop",
    ends: "finished",
    requires: ["holder"],
    event: "DELEGATION_FAILED",
    doc: "The agent refuses the work.",
  },
  fail: {
    from: ["working"],
    to: ["failed"],
    by: ["stitcher"],
    lease: "drop",
    ends: "finished",
    requires: ["holder"],
    event: "DELEGATION_FAILED",
    doc: "The agent failed, for good or with no attempt left.",
  },
  expire: {
    from: LIVE,
    to: ["failed"],
    by: ["sweep"],
    lease: "drop",
    ends: "expired",
    requires: ["due"],
    event: "DELEGATION_FAILED",
    queue: "drop_ticket",
    doc: "A deadline passed: of the whole, of the first lease, or of the answer.",
  },
  cancel: {
    from: LIVE,
    to: ["canceled"],
    by: ["delegator", "approver", "operator", "agent"],
    lease: "drop",
    ends: "canceled",
    requires: [],
    event: "DELEGATION_FAILED",
    queue: "drop_ticket",
    doc: "Nobody wants it any more; the holder learns at once.",
  },
  cascade: {
    from: ["canceled"],
    to: [],
    by: ["delegator", "approver", "operator"],
    lease: "none",
    requires: [],
    event: null,
    doc: "A later cancel reaches the children that an earlier one left alone.",
  },
  adopt: {
    from: LIVE,
    to: [],
    by: ["door"],
    lease: "none",
    requires: [],
    event: null,
    memory: "grows",
    doc: "A child is about to be delegated under it; a cancel will reach it.",
  },
  redrive: {
    from: ["failed"],
    to: [],
    by: ["delegator", "operator"],
    lease: "none",
    requires: [],
    event: null,
    doc: "It is delegated anew; the id of the new one is kept, so that twice is once.",
  },
  follow_up: {
    from: ANY,
    to: [],
    by: ["gateway", "sweep"],
    lease: "none",
    requires: [],
    event: null,
    doc: "What follows from its last moves (canceling its children, telling of its events) is done.",
  },
  push: {
    from: ANY,
    to: [],
    by: ["delegator", "operator"],
    lease: "none",
    requires: [],
    event: null,
    memory: "grows",
    doc: "Its events from here on are POSTed to a URL; of one that is over, the last.",
  },
  reticket: {
    from: ["submitted"],
    to: [],
    by: ["sweep"],
    lease: "none",
    requires: ["ticket"],
    event: null,
    queue: "ticket",
    doc: "Its ticket was lost on the way; a new one takes its place.",
  },
} as const satisfies Record<string, Move>;

export type MoveName = keyof typeof MOVES;
export const MOVE_NAMES = Object.keys(MOVES).filter((name): name is MoveName => name in MOVES);
