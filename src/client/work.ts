/** The types of a handler: its work, its results, and the agent's events. */
import type { LostReason } from "../lease-holder/lost.ts";
import type { Artifact, Message } from "../schema/a2a.ts";
import type { BudgetShown } from "../schema/budget.ts";
import type { Delegation, Progress } from "../schema/delegation.ts";
import type { Lease, ReplyInput } from "../schema/lease.ts";
import type { UsageReport } from "../schema/usage.ts";
import type { Checkpoint } from "../schema/values.ts";
import type { ChunkOptions } from "./artifacts.ts";
import type { Delegated, Delegator } from "./delegator.ts";
import type { DelegateOptions, TaskInput } from "./delegator-options.ts";
import type { FileOptions } from "./files.ts";
import type { OutageEvent } from "./outage.ts";
import type { FileContent } from "./pieces.ts";
import type {
  Answered,
  AnsweredAll,
  AskedQuestion,
  AskOptions,
  DataOfAsk,
  MoreOfQuestion,
  Question,
  QuestionOutcome,
} from "./questions.ts";
import type { WaitedFor, WaitForOptions } from "./wait-for.ts";

/** One attempt at one delegation. */
export interface Work {
  /** The delegation as it was when the lease was granted. */
  readonly delegation: Delegation;
  /** The text parts of the task, joined by newlines. */
  readonly text: string;
  /** The message to act on now: the task, or the newest answer. */
  readonly message: Message;
  /** Counts from 1. Above 1, an earlier worker may have done part of the work. */
  readonly attempt: number;
  readonly leaseId: string;
  /** An A2A JSON-RPC SendMessage request, ready to be sent to an A2A server. */
  readonly request: Lease["request"];
  /** The delegator's W3C trace context, for the handler's own calls. */
  readonly traceparent: string | undefined;
  /**
   * Aborts when the work must stop. Its reason is a {@link LeaseLostError} if the lease was lost (with the `reason`
   * `canceled` if the delegation was canceled), a {@link ParkedError} if a question was asked or children are waited for, an
   * {@link AgentStoppingError} if the agent is stopping, a {@link HandlerTimeoutError} if it took too long, or a
   * {@link CutOffError} if the broker was silent for twice the
   * length of the lease. What the handler returns after that is sent only after a {@link CutOffError}; if it throws, the
   * work is released, which costs no attempt.
   */
  readonly signal: AbortSignal;
  /** Follow-ups, questions and answers up to this lease, oldest first. */
  readonly history: readonly Message[];
  /** The answers so far, by request id, newest last. */
  readonly answers: ReadonlyMap<string, Answered>;
  /** The newest answer. */
  readonly answer: Answered | undefined;
  /**
   * The last checkpoint that an earlier run saved with {@link Work.saveCheckpoint}. It is kept however that run ended:
   * with a question, a release, a retryable failure or the death of its process.
   */
  readonly checkpoint: Checkpoint | undefined;
  /**
   * Saves a small JSON object (up to 4 KiB) with the delegation for the next run. It replaces the checkpoint before it;
   * null removes that. Resolves when the broker has stored it. Throws {@link LeaseLostError}, or an
   * {@link ErrandApiError} if it is too large.
   *
   * @example
   * ```ts
   * const job = work.checkpoint?.job ?? (await startJob(work.text));
   * await work.saveCheckpoint({ job });
   * ```
   */
  saveCheckpoint(checkpoint: Checkpoint | null): Promise<void>;
  /**
   * Reports the progress. Never waits and never fails: at most two reports a second are sent; of those in between, only
   * the latest.
   */
  progress(progress: Progress | string): void;
  /**
   * Reports what this run has used so far: tokens, cost, the model. A report replaces the one before, but members that it
   * leaves out keep their values, and no amount may shrink. Never waits and never fails: it is sent with the progress, at
   * most twice a second, and with the reply. If the broker refuses it, everything else is sent without it, and the agent's
   * `onEvent` gets `usage_refused`.
   *
   * @example
   * ```ts
   * work.usage({ input_tokens: 1200, output_tokens: 80, cost: 0.02, currency: "USD", model: "gpt-5" });
   * ```
   */
  usage(report: UsageReport): void;
  /**
   * The budget of the delegation, its `limit` and what its tree has `used`, as the broker answered it last; undefined: neither
   * it nor a delegation above it has one.
   */
  readonly budget: BudgetShown | undefined;
  /**
   * Aborts when more was used than the budget of this delegation allows, with an {@link OverBudgetError}. The handler then
   * has until `budget.stops_at`, 30 seconds, to return what it has: after that {@link Work.signal} aborts. It may be aborted
   * when the run begins, so ask it, too: a listener is then never called.
   *
   * @example
   * ```ts
   * for (const page of pages) {
   *   if (work.overBudget.aborted) break;
   *   await read(page);
   * }
   * ```
   */
  readonly overBudget: AbortSignal;
  /**
   * Sends a piece of output before the reply; it is streamed to watchers and stored with the delegation. Chunks arrive
   * in order and once each, even across broken connections, and before the reply. Resolves when the broker has stored
   * the chunk. Throws {@link LeaseLostError}, or an {@link ErrandApiError}: `payload_too_large` beyond 1 MiB per chunk
   * or 3 MiB per delegation, `limit_reached` if the delegation has too many events.
   *
   * @example
   * ```ts
   * for await (const text of model) await work.artifact({ artifactId: "draft", parts: [{ text }] }, { append: true });
   * ```
   */
  artifact(artifact: Artifact, options?: ChunkOptions): Promise<void>;
  /**
   * Sends a file as an artifact of its name: bytes, a text, a Blob, or a stream. Up to 384 KiB are in the artifact; a larger
   * file is uploaded, and the artifact names it by its `url` ({@link Delegator.download}). If the broker stores no files, it
   * is sent in chunks, of which a delegation has up to 3 MiB. Resolves and throws as {@link Work.artifact} and
   * {@link Delegator.upload}.
   *
   * @example
   * ```ts
   * await work.file("chart.png", await render(), { mediaType: "image/png" });
   * await work.file("build.log", createReadStream("build.log"), { mediaType: "text/plain" });
   * ```
   */
  file(name: string, content: FileContent, options?: FileOptions): Promise<void>;
  /**
   * Returns the answer to a question, if there is one. Otherwise this run ends here: the delegation is parked, and `ask`
   * throws {@link ParkedError} (do not catch it; `finally` blocks run). The answer starts the handler again from the
   * top, in any worker of the agent, and there the same `ask` returns the answer at once. Code before an `ask` therefore
   * runs again for each answer: keep it free of effects that must not be repeated. With `holdSeconds`, the handler first
   * waits that long with its lease, and an answer in this time lets it go on.
   *
   * @example
   * ```ts
   * const branch = await work.ask("Which branch?", { options: ["main", "next"] });
   * const { decision } = await work.ask({ requestId: "deploy", text: `Deploy ${branch.text}?` });
   * const { data } = await work.ask("How many?", { schema: z.object({ count: z.int() }) });
   * console.log(data.count);
   * ```
   */
  ask<const Q extends string | AskedQuestion, const More extends MoreOfQuestion = Record<never, never>>(
    question: Q,
    more?: More,
  ): Promise<Answered<DataOfAsk<Q, More>>>;
  /**
   * Uses an answer: the first call gets `now`, every later one `before`, also in the same run. Call it before an effect that
   * the answer allows and that must not happen twice. After `before`, the effect may have happened: check whether it did, or
   * ask again with another `requestId`.
   *
   * @example
   * ```ts
   * const answer = await work.ask({ requestId: "pay", text: "Pay 100?", options: ["approve", "deny"] });
   * if (answer.decision === "approve" && (await work.use(answer)) === "now") await pay(100);
   * ```
   */
  use(answer: Pick<Answered, "interruptId" | "requestId">): Promise<"now" | "before">;
  /** As `ask`, for several questions that are answered together: `const [host, token] = await work.askAll([...])`. */
  askAll<const Q extends readonly (string | Question)[]>(
    questions: Q,
    options?: AskOptions,
  ): Promise<AnsweredAll<Q>>;
  /**
   * Return this from a handler to ask a question, instead of `ask`: the next run finds the answer in `answer` and
   * `answers`. Each call is a new question, unless it has a `requestId`. Asking an answered question again fails the
   * work.
   *
   * @example
   * ```ts
   * if (!work.answer) return work.question("Which branch?");
   * ```
   */
  question(asked: string | Question | readonly (string | Question)[], options?: AskOptions): QuestionOutcome;
  /**
   * Return this from a handler to return the work unfinished, which costs no attempt. The next worker gets it after
   * `delaySeconds` (default 0), before new work. After ten releases, the agent's backoff delays it, too.
   */
  release(options?: ReleaseOptions): ReleaseOrCancel;
  /**
   * Return this from a handler to reply with a bare A2A Message instead of a Task, as agents do that only converse. A
   * blocking A2A sender then gets the Message, unless it was shown something of the work before: progress, an artifact or
   * a question. To all other callers it is an ordinary reply.
   */
  bareMessage(message: Message): BareMessage;
  /** Return this from a handler to end the delegation as `canceled` by the agent, with an optional text. */
  cancel(text?: string): ReleaseOrCancel;
  /**
   * All follow-ups of the delegation, from the first, each within milliseconds of its arrival. A run that starts over
   * gets all of them again. The iterator ends with the run.
   *
   * @example
   * ```ts
   * for await (const message of work.messages) notes.push(textOf(message));
   * ```
   */
  readonly messages: AsyncIterable<Message>;
  /**
   * Calls the listener for each of {@link Work.messages}; for those that have already arrived, before it returns. Returns
   * a function that unsubscribes. An error that the listener throws aborts the signal and fails the work.
   */
  onMessage(listener: (message: Message) => unknown): () => void;
  /**
   * Delegates a part of the work as a child (`parent_id`), in the same conversation and trace, with the agent's own
   * token. The child is canceled if the work does not complete, unless the work keeps its children. The same input in a
   * later run returns the same child for as long as its record is kept; set an `idempotencyKey` to delegate it again. Throws
   * `delegation_loop` if the target is this agent or one that works on an ancestor.
   *
   * @example
   * ```ts
   * const part = await work.delegate({ target: "smith", task: "forge it" });
   * const { children } = await work.waitFor([part]);
   * ```
   */
  delegate(input: TaskInput, options?: DelegateOptions): Promise<Delegated>;
  /**
   * Returns the children once they have ended. Otherwise this run ends here: the delegation waits without a lease, and
   * `waitFor` throws {@link ParkedError} (do not catch it; `finally` blocks run). Their end starts the handler again from
   * the top, in any worker of the agent and before new work, and there the same `waitFor` returns at once. Code before it
   * therefore runs again: `delegate` returns the same children, and what else must not be repeated can be kept with a
   * checkpoint. Throws `not_a_child` for a delegation that was not delegated under this one.
   *
   * @example
   * ```ts
   * const parts = [];
   * for (const task of tasks) parts.push(await work.delegate({ target: "smith", task }));
   * const { outcome, children } = await work.waitFor(parts, { timeLimitSeconds: 3600 });
   * const done = children.filter(({ state }) => state === "completed");
   * ```
   */
  waitFor(
    children: readonly (string | { readonly id: string })[],
    options?: WaitForOptions,
  ): Promise<WaitedFor>;
  /** If this run begins after a wait: what became of the children, as `waitFor` returns it. */
  readonly waited: WaitedFor | undefined;
  /** A delegator with the agent's own token, to read, answer or cancel children. */
  readonly delegator: Delegator;
}

/** The end of a delegation: its `state`, with `text` or `message`, `artifacts`, or an `error` with its own code. */
export type Reply = Omit<ReplyInput, "next" | "worker">;

export interface ReleaseOptions {
  /** 0 to 86400. */
  readonly delaySeconds?: number | undefined;
  /** Shown in the event; up to 1024 characters. */
  readonly reason?: string | undefined;
}

/** A handler returns this to end its run without a reply; {@link Work.release} and {@link Work.cancel} create it. */
export class ReleaseOrCancel {
  readonly kind: "release" | "cancel";
  readonly delaySeconds: number | undefined;
  readonly reason: string | undefined;

  constructor(kind: "release" | "cancel", { delaySeconds, reason }: ReleaseOptions) {
    this.kind = kind;
    this.delaySeconds = delaySeconds;
    this.reason = reason;
  }
}

/** A handler returns this to reply with a bare A2A Message; {@link Work.bareMessage} creates it. */
export class BareMessage {
  /** The message of the reply. */
  readonly message: Message;

  constructor(message: Message) {
    this.message = message;
  }

  /** As an ordinary reply. */
  get reply(): Reply {
    return { state: "completed", message: this.message };
  }
}

/** A completed reply with JSON: `{ data: { words: 5 } }`. */
export interface DataReply extends Pick<Reply, "text" | "artifacts" | "usage"> {
  readonly state?: "completed" | undefined;
  /** Any JSON; the one data part of the reply. */
  readonly data: unknown;
}

/**
 * The result of a handler: the reply's text, `{ data }` for JSON, the whole reply, undefined for an empty completed
 * reply, a question, a bare A2A Message, a release or a cancel.
 */
export type Outcome =
  | string
  | DataReply
  | Reply
  | QuestionOutcome
  | BareMessage
  | ReleaseOrCancel
  | undefined;

/**
 * Does one delegation's work. An error that it throws fails the delegation with the code `agent_error` and the name of
 * the error; the delegator sees neither its message nor its stack, which `onError` gets. `retryOn` asks for another
 * attempt. For another code or message, return `{ state: "failed", error: { code, message, retryable: true } }`. If no
 * work would succeed now, throw a {@link WorkerUnavailableError}.
 *
 * An agent whose handler fails three delegations in a row, each within 10 s, suspects itself: it pauses, and fails those
 * for another attempt, unless their error says `retryable: false`. To find out, it may take the next delegation before it
 * replies to a failed one, which then waits for at most 10 s.
 */
export type Handler = (work: Work) => Promise<Outcome> | Outcome;

/** The reason of a handler's signal when the agent stops: the lease is released, which costs no attempt. */
export class AgentStoppingError extends Error {
  override readonly name = "AgentStoppingError";
}

/** The events of an agent, for logs; none needs a reaction. */
export type AgentEvent =
  | { readonly type: "leased"; readonly work: Work }
  | {
      readonly type: "replied";
      readonly work: Work;
      readonly reply: Reply;
      /** What the handler threw, if it did. */
      readonly error?: unknown;
      /** The delegation's state now: `submitted` if a retryable failure returned it to the queue. */
      readonly state: Delegation["state"];
      readonly durationMs: number;
    }
  /** The handler asked a question, or waits for children; then this worker or another one continues. */
  | {
      readonly type: "parked";
      readonly work: Work;
      readonly waitsFor: "answer" | "children";
      readonly interruptId: string | undefined;
    }
  /** The lease was lost: canceled, expired, or released by the operator. No reply was sent. */
  | {
      readonly type: "lost";
      readonly delegationId: string;
      readonly reason: LostReason;
      /**
       * The lease expired after the event loop of this process was blocked for so long, by a computation or because the
       * machine slept: no heartbeat was sent. Compute in a worker thread, or raise `leaseSeconds`.
       */
      readonly blockedMs?: number | undefined;
    }
  /**
   * The handler's signal aborted, because the last call that the broker answered was sent `silentMs` ago. The lease may still
   * be this worker's.
   */
  | { readonly type: "cut_off"; readonly delegationId: string; readonly silentMs: number }
  | { readonly type: "released"; readonly delegationId: string; readonly reason?: string | undefined }
  /** Its handler fails, or cannot work: it takes no work for `delayMs`, and then tries one delegation. */
  | { readonly type: "paused"; readonly delayMs: number; readonly reason: string }
  /** The try after a pause succeeded. */
  | { readonly type: "resumed" }
  /** The broker refused the reported usage; the delegation goes on without it. */
  | { readonly type: "usage_refused"; readonly delegationId: string; readonly reason: string }
  /** More was used than the budget of the delegation allows; its lease is lost at `budget.stops_at`. */
  | { readonly type: "over_budget"; readonly delegationId: string; readonly budget: BudgetShown }
  /** The handler canceled the delegation. */
  | { readonly type: "canceled"; readonly work: Work }
  /** The release failed: the lease expires by itself. */
  | { readonly type: "abandoned"; readonly delegationId: string }
  | OutageEvent;
