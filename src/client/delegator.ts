/** Delegating: give work to an agent, wait for it, watch it, answer its questions, collect results, cancel it. */
import * as z from "zod";
import type { MessageInput } from "../schema/a2a.ts";
import { presenceSchema } from "../schema/agent.ts";
import {
  type DelegateInput,
  type Delegation,
  type DelegationFilter,
  delegationPageSchema,
  delegationSchema,
  LIVE_STATES,
} from "../schema/delegation.ts";
import type { StreamEvent } from "../schema/event.ts";
import { pauseIfEarly, TimeLimit } from "../util/timing.ts";
import { type BatchInput, type BatchOptions, type BatchResult, delegateAll } from "./batch.ts";
import {
  type Answer,
  type Answers,
  type BulkFilter,
  type BulkOptions,
  type ControlOptions,
  type DecideOptions,
  decide,
  inBulk,
  post,
  sendAnswer,
  sendMessage,
} from "./control.ts";
import {
  type CancelOptions,
  type DelegateOptions,
  type EventFilter,
  type GetOptions,
  type ListOptions,
  type WaitOptions,
  type WatchOptions,
  withOptions,
} from "./delegator-options.ts";
import { type ErrandApiError, localError } from "./errors.ts";
import { type ConnectionOptions, Http, route, seconds } from "./http.ts";
import { type Result, type ResultsOptions, readResults } from "./inbox.ts";
import { randomKey } from "./random-key.ts";
import { readEvents } from "./sse.ts";
import { type Branch, readTree } from "./tree.ts";

/** An older broker does not send `scanned_to`. */
const pageSchema = delegationPageSchema.partial({ scanned_to: true });

const delegatedSchema = delegationSchema.extend({ presence: presenceSchema.optional() });
/** With the target's presence where the broker sends it, so that a caller sees that nobody is polling. */
export type Delegated = z.infer<typeof delegatedSchema>;

const cursorSchema = z.object({ cursor: z.string() });

/** Below the idle cut of common proxies. */
const HOLD_SECONDS = 25;
/** How long an answer may be late before a wait gives up on it. */
const GRACE_MS = 1000;

/**
 * The caller's side of a broker. Every method throws {@link ErrandApiError} for what the broker refuses and for
 * an outage that outlasts `retryForMs`, and the reason of the `signal` when that aborts. Runs in browsers too.
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

  /** Opens no connection yet. Throws `invalid_url`. */
  constructor(options: ConnectionOptions = {}) {
    this.#http = new Http(options);
  }

  /**
   * Hands work to an agent: `target` and either `task` (text) or `message` (an A2A Message). It always carries an
   * Idempotency-Key, and keeps it over its retries, so after a 503 or a cut connection the work is accepted once.
   *
   * Throws `agent_unknown`, `not_accepted`, `queue_full` (see `retryAfterMs`), `invalid_request` (see
   * `details.issues`), `idempotency_conflict`. With `details.outcome` `"unknown"` it may have been accepted:
   * repeat the call with the same `idempotencyKey` to find out.
   */
  delegate(input: DelegateInput, options: DelegateOptions = {}): Promise<Delegated> {
    const { idempotencyKey = randomKey(), waitSeconds, traceparent, signal } = options;
    return this.#http.persist(delegatedSchema, {
      method: "POST",
      path: "/v1/delegations",
      headers: {
        "idempotency-key": idempotencyKey,
        ...(waitSeconds !== undefined && { prefer: `wait=${Math.round(waitSeconds)}` }),
        ...(traceparent !== undefined && { traceparent }),
      },
      body: withOptions(input, options),
      signal,
      holdSeconds: waitSeconds ?? 0,
    });
  }

  /**
   * Delegates many. Returns one result for each, in order: the `delegation`, or the `error` with which it was refused.
   * Each has an idempotency key, so a retry accepts none of them twice. Throws only the signal's reason.
   */
  delegateMany(inputs: readonly BatchInput[], options: BatchOptions = {}): Promise<BatchResult[]> {
    return delegateAll(this.#http, inputs, options);
  }

  /** The delegation as it stands. Throws `delegation_not_found`, also for one that is not yours to see. */
  get(id: string, options: GetOptions = {}): Promise<Delegation> {
    const { waitSeconds = 0, signal } = options;
    return this.#http.persist(delegationSchema, {
      path: route`/v1/delegations/${id}`,
      query: { wait_seconds: waitSeconds > 0 ? seconds(waitSeconds) : undefined },
      signal,
      holdSeconds: waitSeconds,
    });
  }

  /**
   * The delegation once it is finished, however it ended (see `state` and `error`), or once it asks something
   * (`interrupt`). Throws `wait_ran_out` after `timeoutSeconds`; the delegation goes on.
   */
  async wait(id: string, options: WaitOptions = {}): Promise<Delegation> {
    const { timeoutSeconds = Number.POSITIVE_INFINITY, signal } = options;
    const endsAt = performance.now() + timeoutSeconds * 1000;
    const limit = new TimeLimit(timeoutSeconds * 1000 + GRACE_MS, signal);
    try {
      for (;;) {
        const askedAt = performance.now();
        const holdSeconds = Math.min(HOLD_SECONDS, Math.max(0, (endsAt - askedAt) / 1000));
        const delegation = await this.get(id, { waitSeconds: holdSeconds, signal: limit.signal });
        if (delegation.state !== "submitted" && delegation.state !== "working") return delegation;
        if (performance.now() >= endsAt) throw waitRanOut(id, timeoutSeconds, delegation.state);
        await pauseIfEarly(askedAt, limit.signal);
      }
    } catch (error) {
      throw limit.expired ? waitRanOut(id, timeoutSeconds) : error;
    } finally {
      limit.close();
    }
  }

  /**
   * Events as they happen; it reconnects by itself, skips nothing and yields nothing twice. One delegation (by
   * its id): starts with a snapshot and ends after the terminal event. A filter (`{}` is everything you may see):
   * starts now and continues until the signal aborts. With `after` it resumes after that event instead. A `RESET`
   * means that earlier events are no longer kept.
   *
   * @example
   * ```ts
   * for await (const event of delegator.watch(id)) console.log(event.type);
   * ```
   */
  async *watch(what: string | EventFilter, options: WatchOptions = {}): AsyncGenerator<StreamEvent, void> {
    const { signal } = options;
    if (typeof what === "string") {
      const path = route`/v1/delegations/${what}/events`;
      yield* readEvents(this.#http, { path, after: options.after, signal, ends: true });
      return;
    }
    const path = "/v1/events";
    const query = { ...what, types: what.types?.join(",") };
    // Pin "now" first: a stream cut before its first event would otherwise start at a later now.
    const after = options.after ?? (await this.#now(path, query, signal));
    yield* readEvents(this.#http, { path, query, after, signal, ends: false });
  }

  /**
   * Your inbox: what you delegated that finished or asks something, oldest first, each once as long as the loop
   * lives, then whatever comes. Keep the `cursor` of what you handled, and after a crash nothing is missed.
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
    return readResults(this.#http, options);
  }

  /** Delegations that you may see, newest first, fetched page by page as the loop asks for them. */
  async *list(filter: DelegationFilter = {}, options: ListOptions = {}): AsyncGenerator<Delegation, void> {
    const { pageSize, signal } = options;
    const state = typeof filter.state === "object" ? filter.state.join(",") : filter.state;
    let cursor: string | undefined;
    do {
      const query = { ...filter, state, cursor, limit: pageSize };
      const page = await this.#http.persist(pageSchema, { path: "/v1/delegations", query, signal });
      yield* page.delegations;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** The delegation, canceled. A second cancel is no error; any other end throws `already_finished`. */
  cancel(id: string, reason?: string, options: CancelOptions = {}): Promise<Delegation> {
    const { cascade, signal } = options;
    const body = { ...(reason !== undefined && { reason }), ...(cascade !== undefined && { cascade }) };
    return post(this.#http, route`/v1/delegations/${id}/cancel`, body, signal);
  }

  /**
   * Erases a finished delegation at once: record, events, history, artifacts. Throws `wrong_state` while it is live,
   * and `delegation_not_found` once it is erased.
   */
  async delete(id: string, { signal }: ControlOptions = {}): Promise<void> {
    await this.#http.persist(z.unknown(), { method: "DELETE", path: route`/v1/delegations/${id}`, signal });
  }

  /**
   * Answers what the delegation asks (`interrupt`); it goes back to its agent before new work. `interruptId` is the
   * question's id, or null for the one that is open. Several requests are answered all at once:
   * `{ answers: { host: "db1", token: { data } } }`. The same answer again is no error.
   *
   * Throws `interrupt_not_open` when that question, or any, is not open; `invalid_request` when the answer is not one
   * to what was asked; `forbidden`.
   *
   * @example
   * ```ts
   * const { id, interrupt } = await delegator.wait(delegationId);
   * if (interrupt) await delegator.answer(id, interrupt.id, "main");
   * ```
   */
  answer(
    id: string,
    interruptId: string | null,
    answer: Answer | Answers,
    options: ControlOptions = {},
  ): Promise<Delegation> {
    return sendAnswer(this.#http, id, interruptId, answer, options.signal);
  }

  /**
   * Answers the open question with `decision: "approve"`. Without an `interruptId` it must be a question for one thing:
   * several throw `invalid_request`, none throws `interrupt_not_open`.
   */
  approve(id: string, options: DecideOptions = {}): Promise<Delegation> {
    return decide(this.#http, id, "approve", options);
  }

  /** As {@link Delegator.approve}, with `decision: "deny"`. */
  deny(id: string, options: DecideOptions = {}): Promise<Delegation> {
    return decide(this.#http, id, "deny", options);
  }

  /**
   * A follow-up while it waits or is worked at: its agent gets it at once. It has a `messageId`, so a retry sends it
   * once. Throws `wrong_state` while it asks something, `already_finished`.
   */
  message(id: string, message: string | MessageInput, options: ControlOptions = {}): Promise<Delegation> {
    return sendMessage(this.#http, id, message, options.signal);
  }

  /**
   * Delegates a failed delegation again and returns the new one (`redrive_of`); a repeated call returns the same.
   * Throws `wrong_state` for one that did not fail.
   */
  redrive(id: string, options: ControlOptions = {}): Promise<Delegation> {
    return post(this.#http, route`/v1/delegations/${id}/redrive`, {}, options.signal);
  }

  /** Redrives what failed of an agent, newest first, page by page as the loop asks; for the operator. */
  redriveMany(filter: BulkFilter, options: BulkOptions = {}): AsyncGenerator<Delegation, void> {
    return inBulk(this.#http, "redrive", filter, options);
  }

  /** Cancels what is live of an agent, newest first, page by page as the loop asks; for the operator. */
  cancelMany(filter: Omit<BulkFilter, "error_code">, options: BulkOptions = {}) {
    return inBulk(this.#http, "cancel", filter, options);
  }

  /**
   * The delegation and what was delegated under it, level by level, parents before their children, oldest first.
   *
   * @example
   * ```ts
   * for await (const { delegation, depth } of delegator.tree(id)) {
   *   console.log("  ".repeat(depth), delegation.target, delegation.state);
   * }
   * ```
   */
  async *tree(id: string, options: ListOptions = {}): AsyncGenerator<Branch, void> {
    const root = await this.get(id, { signal: options.signal });
    yield* readTree(root, (filter) => this.list(filter, options));
  }

  async #now(path: string, query: Record<string, string | undefined>, signal?: AbortSignal): Promise<string> {
    const { cursor } = await this.#http.insist(cursorSchema, {
      path,
      query: { ...query, limit: 1 },
      signal,
    });
    return cursor;
  }
}

function waitRanOut(id: string, timeoutSeconds: number, state = LIVE_STATES.join(" or ")): ErrandApiError {
  return localError({
    code: "wait_ran_out",
    category: "TIMEOUT",
    detail: `${id} is not finished after ${timeoutSeconds} s (${state})`,
    recovery: "It goes on; wait again, or cancel it.",
    retryable: true,
  });
}
