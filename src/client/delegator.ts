/** The delegator's side: delegate work, wait for it, watch it, answer its questions, collect results, cancel it. */
import * as z from "zod";
import type { MessageInput, Part } from "../schema/a2a.ts";
import { type AnswersFilter, answersPageSchema, type SettledQuestion } from "../schema/answered.ts";
import { type Delegation, type DelegationFilter, delegationSchema, isPending } from "../schema/delegation.ts";
import type { StreamEvent } from "../schema/event.ts";
import { presenceSchema } from "../schema/presence.ts";
import type { Tree, TreeEvent } from "../schema/tree.ts";
import { type Answer, type Answers, type DecideOptions, decide, sendAnswer } from "./answer.ts";
import { type BatchInput, type BatchOptions, type BatchResult, delegateAll } from "./batch.ts";
import { type BulkFilter, type BulkOptions, changeMany } from "./bulk.ts";
import {
  type AnswerOptions,
  type CancelOptions,
  type ControlOptions,
  type DelegateOptions,
  type EventFilter,
  type GetOptions,
  type ListOptions,
  type TaskInput,
  type WaitOptions,
  type WatchOptions,
  withOptions,
} from "./delegator-options.ts";
import { Download, type Downloadable, type DownloadOptions } from "./download.ts";
import { eachPage } from "./each-page.ts";
import { ErrandApiError } from "./errors.ts";
import { type ConnectionOptions, Http, route, seconds } from "./http.ts";
import { type Result, type ResultsOptions, readResults } from "./inbox.ts";
import { requireKnown } from "./known-options.ts";
import { listPage } from "./list-page.ts";
import { readNodes, watchNodes } from "./nodes.ts";
import type { FileContent } from "./pieces.ts";
import { randomKey } from "./random-key.ts";
import { readEvents } from "./sse.ts";
import { type Branch, readTree } from "./tree.ts";
import type { UploadOptions } from "./upload.ts";
import { noteVote, type OwnVotes, waitForResult } from "./wait.ts";

const delegatedSchema = delegationSchema.extend({ presence: presenceSchema.optional() });
/** With the target's presence if the broker sends it, so that the caller sees when no worker is polling. */
export type Delegated = z.infer<typeof delegatedSchema>;

const cursorSchema = z.object({ cursor: z.string() });

function nullIfUnknown(error: unknown): null {
  if (error instanceof ErrandApiError && error.code === "delegation_not_found") return null;
  throw error;
}

/**
 * The delegator's side of a broker. Every method throws {@link ErrandApiError} when the broker refuses the call or is
 * unavailable for longer than `retryForMs`, and the reason of the `signal` when that aborts. Runs in browsers, too.
 *
 * @example
 * ```ts
 * const delegator = new Delegator();
 * const { id } = await delegator.delegate({ target: "scout", task: "how many words is this" });
 * const { state, reply, error } = await delegator.wait(id, { timeoutSeconds: 600 });
 * ```
 */
export class Delegator {
  readonly #http: Http;
  readonly #votes: OwnVotes = new Map();

  /** Sends no request yet. Throws `invalid_url`. */
  constructor(options: ConnectionOptions = {}) {
    this.#http = new Http(options);
  }

  /**
   * Hands work to an agent: `target` and either `task` (text) or `message` (an A2A Message). All retries of a call have
   * the same Idempotency-Key, so even after a 503 or a lost connection the work is accepted only once.
   *
   * Throws `agent_unknown`, `not_accepted`, `queue_full` (see `retryAfterMs`), `invalid_request` (see
   * `details.issues`), `idempotency_conflict`. If `details.outcome` is `"unknown"`, the work may have been accepted:
   * repeat the call with the same `idempotencyKey` to find out.
   */
  async delegate(input: TaskInput, options: DelegateOptions = {}): Promise<Delegated> {
    requireKnown("delegate", options);
    const { idempotencyKey = randomKey(), waitSeconds = 0, traceparent, signal } = options;
    const holdSeconds = this.#http.holdSeconds(waitSeconds);
    const delegated = await this.#http.requestWithRetry(delegatedSchema, {
      method: "POST",
      path: "/v1/delegations",
      headers: {
        "idempotency-key": idempotencyKey,
        ...(holdSeconds > 0 && { prefer: `wait=${Math.round(holdSeconds)}` }),
        ...(traceparent !== undefined && { traceparent }),
      },
      body: withOptions(input, options),
      signal,
      holdSeconds,
    });
    const isShort = isPending(delegated.state) && holdSeconds < waitSeconds;
    return isShort ? this.delegate(input, { ...options, idempotencyKey }) : delegated;
  }

  /**
   * Delegates many. Returns one result for each, in order: the `delegation`, or the `error` with which it was refused.
   * Each has an idempotency key, so a retry delegates none of them twice. Throws only the signal's reason.
   */
  async delegateMany(inputs: readonly BatchInput[], options: BatchOptions = {}): Promise<BatchResult[]> {
    requireKnown("delegateMany", options);
    return delegateAll(this.#http, inputs, options);
  }

  /** The delegation in its current state. Throws `delegation_not_found`, also for one that you may not see. */
  async get(id: string, options: GetOptions = {}): Promise<Delegation> {
    requireKnown("get", options);
    const { waitSeconds = 0, signal } = options;
    const holdSeconds = this.#http.holdSeconds(waitSeconds);
    const delegation = await this.#http.requestWithRetry(delegationSchema, {
      path: route`/v1/delegations/${id}`,
      query: { wait_seconds: holdSeconds > 0 ? seconds(holdSeconds) : undefined },
      signal,
      holdSeconds,
    });
    return isPending(delegation.state) && holdSeconds < waitSeconds ? this.get(id, options) : delegation;
  }

  /**
   * Waits until the delegation is finished in any way (see `state` and `error`), or asks a question (`interrupt`). After a
   * vote by this object, it waits for the approvals of others, until another approval voids the vote. Throws `wait_ran_out`
   * after `timeoutSeconds`; the delegation continues.
   */
  async wait(id: string, options: WaitOptions = {}): Promise<Delegation> {
    requireKnown("wait", options);
    return waitForResult(id, options, {
      get: (getOptions) => this.get(id, getOptions),
      watch: (watchOptions) => this.watch(id, watchOptions),
      own: this.#votes,
    });
  }

  /**
   * Events as they happen. It reconnects by itself, skips no event and yields none twice. With a delegation's id, it
   * starts with a snapshot and ends after the terminal event. With a filter (`{}` is everything that you may see), it
   * starts now and continues until the signal aborts. With `after`, it resumes after that event instead, and of a delegation
   * it first shows a question that is still open by a snapshot. A `RESET`
   * event means that earlier events are no longer stored.
   *
   * @example
   * ```ts
   * for await (const event of delegator.watch(id)) console.log(event.type);
   * ```
   */
  async *watch(what: string | EventFilter, options: WatchOptions = {}): AsyncGenerator<StreamEvent, void> {
    requireKnown("watch", options);
    const { signal } = options;
    if (typeof what === "string") {
      const path = route`/v1/delegations/${what}/events`;
      const { after } = options;
      const open = after === undefined ? null : await this.#askedBefore(what, after, signal);
      if (open) yield open;
      yield* readEvents(this.#http, { path, after, signal, ends: true });
      return;
    }
    const path = "/v1/events";
    const query = { ...what, types: what.types?.join(",") };
    // Without a cursor, a stream that breaks before its first event would resume at a later time and skip events.
    const after = options.after ?? (await this.cursor(what, { signal }));
    yield* readEvents(this.#http, { path, query, after, signal, ends: false });
  }

  /** The delegation, if it waits for an answer to a question that no event after the cursor shows. */
  async #askedBefore(id: string, after: string, signal?: AbortSignal): Promise<StreamEvent | null> {
    const delegation = await this.get(id, { signal });
    const { interrupt } = delegation;
    // An id of an event begins with its time.
    const isBefore = interrupt !== null && Date.parse(interrupt.raised_at) <= Number(after.split("-", 1)[0]);
    return isBefore ? { id: after, type: "DELEGATION_SNAPSHOT", delegation_id: id, delegation } : null;
  }

  /**
   * The cursor of the newest event. Take it first, then read a list, then `watch` with it as `after`: what happens in
   * between is not missed.
   */
  async cursor(filter: EventFilter = {}, { signal }: ControlOptions = {}): Promise<string> {
    const query = { ...filter, types: filter.types?.join(","), limit: 1 };
    const call = { path: "/v1/events", query, signal };
    return (await this.#http.requestUntilAvailable(cursorSchema, call)).cursor;
  }

  /**
   * Your inbox: your delegations that finished or ask a question, oldest first. One loop yields each result once, and
   * waits for more at the end. Store the `cursor` of each result that you handled, so that none is missed after a crash.
   *
   * @example
   * ```ts
   * for await (const { delegation, cursor } of delegator.results({ after: await load() })) {
   *   await handle(delegation);
   *   await save(cursor);
   * }
   * ```
   */
  results(options: ResultsOptions = {}): AsyncGenerator<Result, void> {
    requireKnown("results", options);
    return readResults(this.#http, options);
  }

  /** Delegations that you may see, newest first, fetched page by page as the loop asks for them. */
  async *list(filter: DelegationFilter = {}, options: ListOptions = {}): AsyncGenerator<Delegation, void> {
    requireKnown("list", options);
    const { pageSize: limit, signal } = options;
    const pages = eachPage((cursor) => listPage(this.#http, { ...filter, cursor, limit }, signal));
    for await (const { delegations } of pages) yield* delegations;
  }

  /**
   * The questions that were answered, and those that expired unanswered (`outcome`), of the delegations that you may
   * see; newest first, fetched page by page as the loop asks for them.
   *
   * @example
   * ```ts
   * for await (const { by, requests } of delegator.answers({ decision: "approve" })) console.log(by, requests);
   * ```
   */
  async *answers(
    filter: AnswersFilter = {},
    options: ListOptions = {},
  ): AsyncGenerator<SettledQuestion, void> {
    requireKnown("answers", options);
    const { pageSize: limit, signal } = options;
    const pages = eachPage((cursor) =>
      this.#http.requestWithRetry(answersPageSchema, {
        path: "/v1/answers",
        query: { ...filter, cursor, limit },
        signal,
      }),
    );
    for await (const { answers } of pages) yield* answers;
  }

  /**
   * Uploads a file and returns the part that names it, for messages and artifacts:
   * `{ message: { parts: [{ text: "Read it" }, await delegator.upload("log.txt", content)] } }`. It continues after a broken
   * connection. A file that no delegation names is deleted after a day.
   *
   * Throws `payload_too_large`, `quota_exceeded`, `storage_full`, `hash_mismatch`, and `files_off` if the broker stores no
   * files.
   */
  async upload(filename: string, content: FileContent, options: UploadOptions = {}): Promise<Part> {
    // Loaded only when it is needed: pages load this file.
    const { uploadPart } = await import("./upload.ts");
    return uploadPart(this.#http, filename, content, options);
  }

  /**
   * The bytes of a part, a message or an artifact: those in it, and those of files that it names. Nothing is fetched before
   * they are asked for.
   *
   * @example
   * ```ts
   * const { artifacts } = await delegator.get(id);
   * for (const artifact of artifacts) await writeFile(artifact.artifactId, delegator.download(artifact));
   * ```
   */
  download(what: Downloadable, options: DownloadOptions = {}): Download {
    return new Download(this.#http, what, options);
  }

  /** Cancels the delegation. A second cancel is no error; after any other end, it throws `already_finished`. */
  async cancel(id: string, reason?: string, options: CancelOptions = {}): Promise<Delegation> {
    requireKnown("cancel", options);
    const { cascade, signal } = options;
    const body = { ...(reason !== undefined && { reason }), ...(cascade !== undefined && { cascade }) };
    return this.#post(route`/v1/delegations/${id}/cancel`, body, signal);
  }

  /**
   * Erases a finished delegation at once: record, events, history, artifacts. Throws `wrong_state` while it is live,
   * and `delegation_not_found` once it is erased.
   */
  async delete(id: string, { signal }: ControlOptions = {}): Promise<void> {
    await this.#http.requestWithRetry(z.unknown(), {
      method: "DELETE",
      path: route`/v1/delegations/${id}`,
      signal,
    });
  }

  /**
   * Answers the delegation's question (`interrupt`); its agent then continues, before new work. `interruptId` is the
   * question's id, or null for the open question. If the question has several requests, answer all of them:
   * `{ answers: { host: "db1", token: { data } } }`. All retries of a call have the same Idempotency-Key,
   * so a repeat is no error.
   *
   * If the agent needs the approvals of several people, an approval that is not the last one is a vote: the delegation
   * returned is still `input_required`, and `interrupt.votes` has who approved, and what. To agree with them, send
   * `{ answers: interrupt.votes.answers }`; another approval voids theirs.
   *
   * Throws `interrupt_not_open` if that question is not open, or with null if none is; `invalid_request` if the answer
   * does not fit the question; `forbidden`.
   *
   * @example
   * ```ts
   * const { id, interrupt } = await delegator.wait(delegationId);
   * if (interrupt) await delegator.answer(id, interrupt.id, "main");
   * ```
   */
  async answer(
    id: string,
    interruptId: string | null,
    answer: Answer | Answers,
    options: AnswerOptions = {},
  ): Promise<Delegation> {
    requireKnown("answer", options);
    return this.#noting(sendAnswer(this.#http, id, interruptId, answer, options));
  }

  /**
   * Answers the open question with `decision: "approve"`, or votes on it as {@link Delegator.answer} does. Throws
   * `interrupt_not_open` if no question is open, and without an `interruptId` also `invalid_request` if the question has several requests.
   */
  async approve(id: string, options: DecideOptions = {}): Promise<Delegation> {
    requireKnown("approve", options);
    return this.#noting(decide(this.#http, id, "approve", options));
  }

  /** As {@link Delegator.approve}, with `decision: "deny"`. */
  async deny(id: string, options: DecideOptions = {}): Promise<Delegation> {
    requireKnown("deny", options);
    return this.#noting(decide(this.#http, id, "deny", options));
  }

  /**
   * Sends a follow-up to a delegation that is queued or in progress; a worker that has it gets the message at once.
   * All retries have the same `messageId`, so it arrives once. Throws `wrong_state` while a question is open, and
   * `already_finished`.
   */
  async message(
    id: string,
    message: string | MessageInput,
    options: ControlOptions = {},
  ): Promise<Delegation> {
    requireKnown("message", options);
    const input: MessageInput = typeof message === "string" ? { parts: [{ text: message }] } : message;
    const body = { message: { ...input, messageId: input.messageId ?? randomKey() } };
    return this.#post(route`/v1/delegations/${id}/messages`, body, options.signal);
  }

  /**
   * Delegates a failed delegation again and returns the new one (`redrive_of`); a repeated call returns the same.
   * Throws `wrong_state` for one that did not fail.
   */
  async redrive(id: string, options: ControlOptions = {}): Promise<Delegation> {
    requireKnown("redrive", options);
    return this.#post(route`/v1/delegations/${id}/redrive`, {}, options.signal);
  }

  /** Redrives an agent's failed delegations, newest first, page by page as the loop asks for them. Operator only. */
  redriveMany(filter: BulkFilter, options: BulkOptions = {}): AsyncGenerator<Delegation, void> {
    return changeMany(this.#http, "redrive", filter, options);
  }

  /** Cancels an agent's live delegations, newest first, page by page as the loop asks for them. Operator only. */
  cancelMany(filter: Omit<BulkFilter, "error_code">, options: BulkOptions = {}) {
    return changeMany(this.#http, "cancel", filter, options);
  }

  /**
   * The delegation and everything delegated under it, level by level: parents before their children, oldest first.
   *
   * @example
   * ```ts
   * for await (const { delegation, depth } of delegator.tree(id)) {
   *   console.log("  ".repeat(depth), delegation.target, delegation.state);
   * }
   * ```
   */
  async *tree(id: string, options: ListOptions = {}): AsyncGenerator<Branch, void> {
    requireKnown("tree", options);
    const { signal } = options;
    const root = await this.get(id, { signal });
    yield* readTree(root, {
      nodes: (top) => this.nodes(top, { signal }),
      list: (filter) => this.list(filter, options),
      find: (one) => this.get(one, { signal }).catch(nullIfUnknown),
    });
  }

  /**
   * The tree of a delegation in one call: place, agent and state of each, also of what agents delegated further. The
   * answer has up to 2000 nodes; `more_below` says where some are missing.
   */
  async nodes(id: string, options: ControlOptions = {}): Promise<Tree> {
    requireKnown("nodes", options);
    return readNodes(this.#http, id, options);
  }

  /**
   * Watches a tree from its root, without contents and without an end: an event for each delegation that is added or
   * changes its state. Without `after`, it begins now; to miss nothing, begin after the `cursor` of {@link nodes}.
   */
  watchNodes(id: string, options: WatchOptions = {}): AsyncGenerator<TreeEvent, void> {
    requireKnown("watchNodes", options);
    return watchNodes(this.#http, id, options);
  }

  async #noting(answering: Promise<Delegation>): Promise<Delegation> {
    const delegation = await answering;
    noteVote(this.#votes, delegation);
    return delegation;
  }

  #post(path: string, body: object, signal?: AbortSignal): Promise<Delegation> {
    return this.#http.requestWithRetry(delegationSchema, { method: "POST", path, body, signal });
  }
}
