/**
 * What a handler gets and gives: one delegation under one lease, and what the agent tells of itself.
 * Limit: shapes only.
 */

import type { LostReason } from "../lease-holder/lost.ts";
import type { Artifact, Message } from "../schema/a2a.ts";
import type { DelegateInput, Delegation, Progress } from "../schema/delegation.ts";
import type { Lease, ReplyInput } from "../schema/lease.ts";
import type { Checkpoint } from "../schema/values.ts";
import type { ChunkOptions } from "./artifacts.ts";
import type { Delegated, Delegator } from "./delegator.ts";
import type { DelegateOptions } from "./delegator-options.ts";
import type { OutageEvent } from "./outage.ts";
import type { Answered, Asking, AskOptions, Question } from "./questions.ts";

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
   * Aborts when the work must stop: the lease was lost ({@link LeaseLostError}, its `reason` `canceled` when the
   * delegation was), a question was raised ({@link ParkedError}), or the agent is stopping
   * ({@link AgentStoppingError}). Nothing that a handler returns after that is sent.
   */
  readonly signal: AbortSignal;
  /** Follow-ups, questions and answers up to this lease, oldest first. */
  readonly history: readonly Message[];
  /** What was answered so far, by request id, the newest last. */
  readonly answers: ReadonlyMap<string, Answered>;
  /** The newest of them. */
  readonly answer: Answered | undefined;
  /**
   * What an earlier run kept for this one with {@link Work.saveCheckpoint}, whatever ended it: its process died, it gave
   * the work back, it failed and is tried again, it asked.
   */
  readonly checkpoint: Checkpoint | undefined;
  /**
   * Keeps a small JSON object (up to 4 KiB) with the delegation for the next run, in place of the one before; null takes
   * it away. Resolves when the broker has it. Throws {@link LeaseLostError}, or an {@link ErrandApiError} when it is too
   * large.
   *
   * @example
   * ```ts
   * const job = work.checkpoint?.job ?? (await startJob(work.text));
   * await work.saveCheckpoint({ job });
   * ```
   */
  saveCheckpoint(checkpoint: Checkpoint | null): Promise<void>;
  /** Tells who watches how far it is. Never waits and never fails: at most two a second are sent, the latest wins. */
  progress(progress: Progress | string): void;
  /**
   * Sends a piece of output before the reply; it is streamed to who watches and kept with the delegation. Chunks
   * arrive in the order of asking and once each, whatever breaks on the way; the reply waits for them. Resolves
   * when the broker has it. Throws {@link LeaseLostError}, or an {@link ErrandApiError}: `payload_too_large`
   * beyond 1 MiB a chunk or 3 MiB a delegation, `limit_reached` when the delegation has too many events.
   *
   * @example
   * ```ts
   * for await (const text of model) await work.artifact({ artifactId: "draft", parts: [{ text }] }, { append: true });
   * ```
   */
  artifact(artifact: Artifact, options?: ChunkOptions): Promise<void>;
  /**
   * The answer to a question, if there is one; otherwise this run ends here. The delegation is parked, `ask` throws
   * {@link ParkedError} (let it pass; `finally` blocks run), and the answer starts the handler again from the top, in
   * any worker of the agent. There the same `ask` returns the answer at once. So what stands before an `ask` runs
   * once more for each answer: keep it free of effects that must not be repeated.
   *
   * @example
   * ```ts
   * const branch = await work.ask("Which branch?", { options: ["main", "next"] });
   * const { decision } = await work.ask({ requestId: "deploy", text: `Deploy ${branch.text}?` });
   * ```
   */
  ask(
    question: string | (Question & AskOptions),
    more?: Omit<Question, "text" | "message"> & AskOptions,
  ): Promise<Answered>;
  /** As `ask` for several at once, answered all at once: `const [host, token] = await work.askAll([...])`. */
  askAll<const Q extends readonly (string | Question)[]>(
    questions: Q,
    options?: AskOptions,
  ): Promise<{ readonly [Place in keyof Q]: Answered }>;
  /**
   * What a handler returns to ask, instead of `ask`: the next run finds the answer in `answer` and `answers`. Each time
   * it is another question, unless it has a `requestId`; asking again under one that was answered fails the work.
   *
   * @example
   * ```ts
   * if (!work.answer) return work.question("Which branch?");
   * ```
   */
  question(asked: string | Question | readonly (string | Question)[], options?: AskOptions): Asking;
  /**
   * What a handler returns to give the work back unfinished, no attempt spent: for whoever leases it next, after
   * `delaySeconds` (default 0). It comes before new work; after ten times the agent's backoff is put between.
   */
  release(options?: ReleaseOptions): Leaving;
  /** What a handler returns to end the delegation as `canceled`, by the agent, with words or without. */
  cancel(text?: string): Leaving;
  /**
   * Follow-ups as they arrive, within milliseconds, beginning with the first of the delegation: a run that starts
   * over gets all of them again. Ends with the run.
   *
   * @example
   * ```ts
   * for await (const message of work.messages) notes.push(textOf(message));
   * ```
   */
  readonly messages: AsyncIterable<Message>;
  /**
   * Calls back for each of {@link Work.messages}; the first ones before it returns. Returns how to take it back. What
   * the listener throws aborts the signal and fails the work.
   */
  onMessage(listener: (message: Message) => unknown): () => void;
  /**
   * Delegates a part of the work: under it (`parent_id`, so a cancel reaches it), in its conversation and its trace, by
   * the agent's own token. The same input in a later run finds the same delegation for as long as it is kept; set an
   * `idempotencyKey` to delegate it again. Throws `delegation_loop` when the target is this agent or an ancestor's.
   *
   * @example
   * ```ts
   * const { id } = await work.delegate({ target: "smith", task: "forge it" });
   * const { reply } = await work.delegator.wait(id, { signal: work.signal });
   * ```
   */
  delegate(input: DelegateInput, options?: DelegateOptions): Promise<Delegated>;
  /** The delegator's side with the agent's own token, to wait for what was delegated, to answer or cancel it. */
  readonly delegator: Delegator;
}

/** How a delegation ends: `state`, and `text` or `message`, `artifacts`, or an `error` with its own code. */
export type Reply = Omit<ReplyInput, "next">;

export interface ReleaseOptions {
  /** 0 to 86400. */
  readonly delaySeconds?: number | undefined;
  /** Stands in the event; up to 1024 characters. */
  readonly reason?: string | undefined;
}

/** What a handler returns to end its run without a reply; made by {@link Work.release} and {@link Work.cancel}. */
export class Leaving {
  readonly kind: "release" | "cancel";
  readonly delaySeconds: number | undefined;
  readonly reason: string | undefined;

  constructor(kind: "release" | "cancel", { delaySeconds, reason }: ReleaseOptions) {
    this.kind = kind;
    this.delaySeconds = delaySeconds;
    this.reason = reason;
  }
}

/**
 * What a handler returns: the reply's text, the whole reply, nothing for an empty completed reply, a question, or that
 * it leaves the work.
 */
export type Outcome = string | Reply | Asking | Leaving | undefined;

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
  /** It asked something; the answer brings it back, to this worker or another. */
  | { readonly type: "parked"; readonly work: Work; readonly interruptId: string | undefined }
  /** Canceled, expired or taken back; nothing was sent. */
  | { readonly type: "lost"; readonly delegationId: string; readonly reason: LostReason }
  | { readonly type: "released"; readonly delegationId: string; readonly reason?: string | undefined }
  /** The agent ended it as canceled. */
  | { readonly type: "canceled"; readonly work: Work }
  /** Should have been released, but the broker could not be told: the lease runs out by itself. */
  | { readonly type: "abandoned"; readonly delegationId: string }
  | OutageEvent;
