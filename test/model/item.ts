/**
 * What the model keeps of a delegation, a question and an agent. Limit: numbers of messages and artifacts, not what
 * stands in them.
 */
import type { State } from "../../src/schema/delegation.ts";
import type { ErrorCode } from "../../src/schema/errors.ts";
import type { LeaseLostReason } from "../../src/schema/lease.ts";

export interface Refusal {
  readonly code: ErrorCode;
  readonly reason?: LeaseLostReason | undefined;
}

export interface ModelAgent {
  readonly name: string;
  maxWorking: number | null;
  maxWaiting: number;
  paused: boolean;
}

export type QuestionShape = "named" | "otherwise" | "unnamed" | "unsaid" | "several" | "unnamedToo";
export type ReplyKind = "completed" | "otherwise" | "failed" | "retryable" | "rejected";

export interface AskedQuestion {
  readonly kind: "input" | "auth";
  readonly shape: QuestionShape;
  /** What makes it the same question as another. */
  readonly key: string;
  readonly id: string;
  readonly requests: readonly string[];
  /** The body it was asked with. */
  readonly body: string;
  /** The body that answered it. */
  answer: string | null;
}

export interface ModelPush {
  readonly id: string;
  /** Where its receiver is. */
  readonly path: string;
  /** The first event that it is told of. */
  readonly from: number;
  /** The last event before it was taken away; null: it is there. */
  until: number | null;
}

export interface Item {
  readonly id: string;
  readonly target: string;
  readonly delegator: string;
  readonly parent: Item | null;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly startBy: number | null;
  readonly createdAt: number;
  readonly deadlineAt: number;
  state: State;
  version: number;
  attempt: number;
  /** Leases granted so far; the number of the newest is its fence. */
  fence: number;
  /** Why the lease of each fence ended. */
  readonly ends: Map<number, LeaseLostReason>;
  lease: { readonly seconds: number; expiresAt: number; confirmBy: number | null } | null;
  readyAt: number;
  /** Its ticket can be popped; else it is delayed. */
  queued: boolean;
  /** Its ticket is gone from the queue; the next sweep makes it again. */
  lost: boolean;
  /** Smaller is older; what one sweep queued shares a place. */
  place: number;
  returned: boolean;
  releases: number;
  /** Seconds from its start to its deadline. */
  readonly ttl: number;
  open: { readonly question: AskedQuestion; readonly lasts: number; readonly expiresAt: number } | null;
  readonly questions: AskedQuestion[];
  /** The question that the lease of a fence ended with. */
  readonly asked: Map<number, AskedQuestion>;
  readonly said: Map<string, string>;
  unseen: string[];
  closed: { readonly fence: number; readonly kind: ReplyKind } | null;
  history: number;
  artifacts: number;
  /** The fence that the newest of them came under. */
  artifactFence: number;
  error: string | null;
  readonly pushes: ModelPush[];
  readonly children: Item[];
  redriven: Item | null;
  /** Type and status of every event it should have left, and after how many seconds it is tried again. */
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
  readonly priority: number;
  readonly maxAttempts: number;
  readonly delay?: number | undefined;
  readonly ttl?: number | undefined;
  readonly startWithin?: number | undefined;
}
