/**
 * What a handler gets and gives: one delegation under one lease, and what the agent tells of itself.
 * Limit: shapes only.
 */
import type { Artifact, Message } from "../schema/a2a.ts";
import type { Delegation, Progress } from "../schema/delegation.ts";
import type { Lease, ReplyInput } from "../schema/lease.ts";
import type { ChunkOptions } from "./artifacts.ts";
import type { ErrandApiError } from "./errors.ts";
import type { LostReason } from "./lease-keeper.ts";

/** One attempt at one delegation. */
export interface Work {
  /** As it stood when the lease was granted. */
  readonly delegation: Delegation;
  /** The text parts of the task, joined by newlines. */
  readonly text: string;
  /** The message to act on now: the task, or the newest answer to what was asked. */
  readonly message: Message;
  /** From 1; more than that, and an earlier worker may have done part of it. */
  readonly attempt: number;
  readonly leaseId: string;
  /** An A2A JSON-RPC SendMessage envelope, to be handed on to an A2A server as it is. */
  readonly request: Lease["request"];
  /** The delegator's W3C trace context, to be sent on with what the handler calls. */
  readonly traceparent: string | undefined;
  /**
   * Aborts when the work must stop: the lease was lost or the delegation canceled ({@link LeaseLostError}),
   * or the agent is stopping ({@link AgentStoppingError}). Nothing that a handler returns after that is sent.
   */
  readonly signal: AbortSignal;
  /** Tells who watches how far it is. Never waits and never fails: at most two a second are sent, the latest wins. */
  progress(progress: Progress | string): void;
  /**
   * Sends a piece of output before the reply; it is streamed to who watches and kept with the delegation. Chunks
   * arrive in the order of asking and once each, whatever breaks on the way; the reply waits for them. Resolves
   * when the broker has it. Throws {@link LeaseLostError}, or an {@link ErrandApiError}: `payload_too_large`
   * beyond 1 MiB a chunk or 3 MiB a delegation, `quota_exceeded` when the delegation has too many events.
   *
   * @example
   * ```ts
   * for await (const text of model) await work.artifact({ artifactId: "draft", parts: [{ text }] }, { append: true });
   * ```
   */
  artifact(artifact: Artifact, options?: ChunkOptions): Promise<void>;
}

/** How a delegation ends: `state`, and `text` or `message`, `artifacts`, or an `error` with its own code. */
export type Reply = Omit<ReplyInput, "next">;

/** What a handler returns: the reply's text, the whole reply, or nothing for an empty completed reply. */
export type Outcome = string | Reply | undefined;

/**
 * Does one delegation's work. What it throws fails the delegation with the error's message and the code
 * `agent_error`; for a code of your own, or another try, return
 * `{ state: "failed", error: { code, message, retryable: true } }`.
 */
export type Handler = (work: Work) => Promise<Outcome> | Outcome;

/** The reason of a handler's signal when the agent stops: the lease goes back without spending the attempt. */
export class AgentStoppingError extends Error {
  override readonly name = "AgentStoppingError";
}

/** What an agent tells of itself, for logs; nothing needs to be done about any of it. */
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
