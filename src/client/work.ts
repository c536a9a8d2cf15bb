/**
 * What a handler gets and gives: one delegation under one lease, and what the agent tells of itself.
 * Limit: shapes only.
 */
import type { Message } from "../schema/a2a.ts";
import type { Delegation, Progress } from "../schema/delegation.ts";
import type { Lease, ReplyInput } from "../schema/lease.ts";
import type { ErrandApiError } from "./errors.ts";
import type { LostReason } from "./lease-keeper.ts";

/** One attempt at one delegation. */
export interface Work {
  readonly delegation: Delegation;
  /** The text parts of the task, joined by newlines. */
  readonly text: string;
  /** The message to act on now: the task, or the newest answer to what was asked. */
  readonly message: Message;
  readonly attempt: number;
  readonly leaseId: string;
  /** An A2A JSON-RPC SendMessage envelope, to be handed on to an A2A server as it is. */
  readonly request: Lease["request"];
  readonly traceparent: string | undefined;
  /**
   * Aborts when the work must stop: the lease was lost or the delegation canceled ({@link LeaseLostError}),
   * or the agent is stopping. Nothing that a handler returns after that is sent.
   */
  readonly signal: AbortSignal;
  /** Tells who watches how far it is. At most two a second are sent; the latest wins. */
  progress(progress: Progress | string): void;
}

export type Reply = Omit<ReplyInput, "next">;

/** What a handler returns: the reply's text, the whole reply, or nothing for an empty completed reply. */
export type Outcome = string | Reply | undefined;

/** A handler that throws fails the delegation, with its error's message and the code `agent_error`. */
export type Handler = (work: Work) => Promise<Outcome> | Outcome;

/** The agent stops: the lease goes back without spending the attempt. */
export class AgentStoppingError extends Error {
  override readonly name = "AgentStoppingError";
}

export type AgentEvent =
  | { readonly type: "leased"; readonly work: Work }
  | {
      readonly type: "replied";
      readonly work: Work;
      readonly reply: Reply;
      /** Where the delegation stands now: `submitted` when a retryable failure went back to the queue. */
      readonly state: Delegation["state"];
      readonly durationMs: number;
    }
  /** Canceled, expired or taken back; nothing was sent. */
  | { readonly type: "lost"; readonly delegationId: string; readonly reason: LostReason }
  | { readonly type: "released"; readonly delegationId: string }
  /** Should have been released, but the broker could not be told: the lease runs out by itself. */
  | { readonly type: "abandoned"; readonly delegationId: string }
  /** The broker is away; work goes on and asking goes on. */
  | { readonly type: "retrying"; readonly error: ErrandApiError; readonly delayMs: number }
  | { readonly type: "recovered" };
