/**
 * The model's state of a delegation, a question and an agent. Limit: of messages and artifacts only the number, not the
 * content.
 */
import type { State } from "../../src/schema/delegation.ts";
import type { ErrorCode } from "../../src/schema/errors.ts";
import type { LeaseLostReason } from "../../src/schema/lease.ts";
import type { RuleShape } from "./rules.ts";
import type { ModelVotes } from "./votes.ts";

export interface Refusal {
  readonly code: ErrorCode;
  readonly reason?: LeaseLostReason | undefined;
}

export interface ModelAgent {
  readonly name: string;
  maxWorking: number | null;
  maxWaiting: number;
  /** Of each conversation it works on one delegation at a time. */
  serial: boolean;
  /** Of the turns of delegators; 1 if absent. */
  readonly weights: Readonly<Record<string, number>>;
  paused: boolean;
  /** It takes answers only from people. */
  person: boolean;
  /** How many people must approve what it asks. */
  votes: ModelVotes;
}

export interface ModelRule {
  readonly id: string;
  readonly agent: string;
  readonly by: string;
  readonly shape: RuleShape;
  readonly decision: "approve" | "deny";
  readonly expiresAt: number | null;
  readonly maxUses: number | null;
  uses: number;
  revoked: boolean;
}

export interface ModelBudget {
  tokens: number;
  readonly asks: boolean;
  isOver: boolean;
  overAt: number | null;
  stopAt: number | null;
  /** The limit that the broker's question proposes. */
  proposed: number;
}

export type QuestionShape =
  | "named"
  | "otherwise"
  | "unnamed"
  | "unsaid"
  | "several"
  | "unnamedToo"
  /** It proposes an action, so its answer needs a decision. */
  | "approval"
  /** The broker asks it, for a larger budget. */
  | "budget";
export type ReplyKind = "completed" | "otherwise" | "failed" | "retryable" | "rejected";

export interface AskedQuestion {
  readonly kind: "input" | "auth";
  readonly shape: QuestionShape;
  /** Questions with the same key are the same question. */
  readonly key: string;
  readonly id: string;
  readonly requests: readonly string[];
  /** The request body that asked it. */
  readonly body: string;
  /** The request body that answered it, who sent it, and its request key; null: it is open. */
  answer: { readonly text: string; readonly by: string; readonly key: string | null } | null;
  /** The request bodies that were votes on it. */
  readonly voted?: string[];
  /** What a rule decided, if one answered it. */
  readonly ruled?: "approve" | "deny";
}

export interface ModelPush {
  readonly id: string;
  /** The path of its receiver's URL. */
  readonly path: string;
  /** The `seq` of the first event that it receives. */
  readonly from: number;
  /** The `seq` of the last event before the config was deleted; null: it exists. */
  until: number | null;
}

export interface Item {
  readonly id: string;
  readonly target: string;
  readonly delegator: string;
  readonly parent: Item | null;
  readonly context: string | null;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly startBy: number | null;
  readonly createdAt: number;
  readonly deadlineAt: number;
  state: State;
  version: number;
  attempt: number;
  /** The number of leases granted so far, which is the newest one's fence. */
  fence: number;
  /** Fence → why that lease ended. */
  readonly ends: Map<number, LeaseLostReason>;
  lease: {
    readonly seconds: number;
    readonly confirm: number | undefined;
    expiresAt: number;
    confirmBy: number | null;
    /** How many outages have extended it since its holder's last call. */
    graces: number;
  } | null;
  /** The lease that ended last. */
  lastLease: Item["lease"];
  /** The fence of the newest lease, if it lapsed and its holder may reclaim it. */
  lapsed: number | null;
  readyAt: number;
  /** True: its ticket can be popped. False: it is delayed or lost. */
  queued: boolean;
  /** Its ticket is not in the queue; the next sweep replaces it. */
  lost: boolean;
  /** Its place in the queue, smaller first; delegations that one sweep queued share a place. */
  place: number;
  returned: boolean;
  /** Its number in the line of its conversation; 0: it never joins one; null: it has not joined yet. */
  line: number | null;
  /** The one before it in that line; null: it has its turn. */
  behind: Item | null;
  /** When the sweep looks next whether it is now the first in its line. */
  checkAt: number;
  releases: number;
  /** Seconds from its creation to its deadline. */
  readonly ttl: number;
  open: { readonly question: AskedQuestion; readonly lasts: number; readonly expiresAt: number } | null;
  /** The approvals of the open question so far: of what, and whose. */
  votes: { readonly content: string; readonly by: readonly string[] } | null;
  /** The wait for children that it began last; it has ended if the state is another. */
  awaits: { readonly children: ReadonlySet<Item>; readonly until: number; left: number } | null;
  readonly questions: AskedQuestion[];
  /** Fence → the question that ended that lease. */
  readonly asked: Map<number, AskedQuestion>;
  /** Question and request → the lease and the key that used the answer. */
  readonly used: Map<string, string>;
  readonly said: Map<string, string>;
  unseen: string[];
  closed: { readonly fence: number; readonly kind: ReplyKind; readonly used: number | undefined } | null;
  history: number;
  /** What its attempts have used, oldest first: the earlier leases' sum, and the last report of the newest one. */
  readonly usage: {
    attempt: number;
    fence: number;
    before: number;
    now: number;
    /** A lease of it ended otherwise than with a question, and may have used more. */
    partial: boolean;
    complete: boolean;
  }[];
  artifacts: number;
  /** The fence of the newest artifact. */
  artifactFence: number;
  error: string | null;
  /** A question of it expired, so the error names who was notified. */
  isUnanswered: boolean;
  readonly pushes: ModelPush[];
  /** The `seq` of each event that no push config gets: those beside an open question, which are no update of A2A. */
  readonly unpushed: Set<number>;
  readonly children: Item[];
  readonly budget: ModelBudget | null;
  redriven: Item | null;
  /** The events that it must have: type and status of each, and in how many seconds it is retried. */
  readonly log: string[];
}

export interface Held {
  readonly item: Item;
  readonly fence: number;
  readonly id: string;
}

export interface Submitted {
  readonly id: string;
  readonly target: string;
  readonly delegator: string;
  readonly parent?: Item | null;
  readonly context?: string | null;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly delay?: number | undefined;
  readonly ttl?: number | undefined;
  readonly startWithin?: number | undefined;
  readonly budget?: ModelBudget | null;
}
