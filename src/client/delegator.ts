/**
 * Delegating: hand work to an agent, wait for it, watch it, collect what came of it, cancel it.
 * Limit: what a delegation asks (`input_required`) ends a wait; it is answered over HTTP for now.
 */
import * as z from "zod";
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
import type {
  CancelOptions,
  DelegateOptions,
  EventFilter,
  GetOptions,
  ListOptions,
  WaitOptions,
  WatchOptions,
} from "./delegator-options.ts";
import { type ErrandApiError, localError } from "./errors.ts";
import { type ConnectionOptions, Http, route, seconds } from "./http.ts";
import { type Result, type ResultsOptions, readResults } from "./inbox.ts";
import { randomKey } from "./random-key.ts";
import { readEvents } from "./sse.ts";
import { breathe, TimeLimit } from "./timing.ts";

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

  /** Opens nothing yet. Throws `invalid_url`. */
  constructor(options: ConnectionOptions = {}) {
    this.#http = new Http(options);
  }

  /**
   * Hands work to an agent: `target` and either `task` (text) or `message` (an A2A Message). It always carries an
   * Idempotency-Key, and keeps it over its retries, so after a 503 or a cut connection the work is accepted once.
   *
   * Throws `agent_unknown`, `not_accepted`, `queue_full` (see `retryAfterMs`), `invalid_request` (see
   * `details.issues`), `idempotency_conflict`. With `details.outcome` `"unknown"` it may have been accepted: the
   * same call with the same `idempotencyKey` tells.
   */
  delegate(input: DelegateInput, options: DelegateOptions = {}): Promise<Delegated> {
    const { idempotencyKey = randomKey(), waitSeconds, signal } = options;
    return this.#http.persist(delegatedSchema, {
      method: "POST",
      path: "/v1/delegations",
      headers: {
        "idempotency-key": idempotencyKey,
        ...(waitSeconds !== undefined && { prefer: `wait=${Math.round(waitSeconds)}` }),
      },
      body: input,
      signal,
      holdSeconds: waitSeconds ?? 0,
    });
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
        await breathe(askedAt, limit.signal);
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
   * starts now and goes on until the signal aborts. With `after` it resumes behind that event instead. A `RESET`
   * says that events before it are no longer kept.
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
    let cursor: string | undefined;
    do {
      const query = { ...filter, cursor, limit: pageSize };
      const page = await this.#http.persist(delegationPageSchema, { path: "/v1/delegations", query, signal });
      yield* page.delegations;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** The delegation, canceled. A second cancel is no error; any other end throws `already_finished`. */
  cancel(id: string, reason?: string, options: CancelOptions = {}): Promise<Delegation> {
    const { cascade, signal } = options;
    return this.#http.persist(delegationSchema, {
      method: "POST",
      path: route`/v1/delegations/${id}/cancel`,
      body: { ...(reason !== undefined && { reason }), ...(cascade !== undefined && { cascade }) },
      signal,
    });
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
