/**
 * Delegating: hand work to an agent, wait for it, watch it, cancel it.
 * Limit: what a delegation asks (`input_required`) ends a wait; it is answered over HTTP for now.
 */
import { z } from "zod";
import { presenceSchema } from "../schema/agent.ts";
import { type DelegateInput, type Delegation, delegationSchema, LIVE_STATES } from "../schema/delegation.ts";
import type { EventType, StreamEvent } from "../schema/event.ts";
import { type ErrandApiError, localError } from "./errors.ts";
import { type ConnectionOptions, Http, route, seconds } from "./http.ts";
import { readEvents } from "./sse.ts";
import { sleep, TimeLimit } from "./timing.ts";

export interface DelegateOptions {
  /** Default: a new random one. Give your own to find the same delegation again after a crash. */
  readonly idempotencyKey?: string | undefined;
  /** How long the answer may wait for the end; the delegation then comes finished, if it is. At most 60. */
  readonly waitSeconds?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WaitOptions {
  readonly timeoutSeconds?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface EventFilter {
  readonly target?: string | undefined;
  readonly delegator?: string | undefined;
  readonly delegation_id?: string | undefined;
  readonly context_id?: string | undefined;
  readonly types?: readonly EventType[] | undefined;
}

const delegatedSchema = delegationSchema.extend({ presence: presenceSchema.optional() });
/** With the target's presence where the broker sends it, so that a caller sees that nobody is polling. */
export type Delegated = z.infer<typeof delegatedSchema>;

const cursorSchema = z.object({ cursor: z.string() });

/** Below the idle cut of common proxies. */
const HOLD_SECONDS = 25;
/** How long an answer may be late before a wait gives up on it. */
const GRACE_MS = 1000;

export class Delegator {
  readonly #http: Http;

  constructor(options: ConnectionOptions = {}) {
    this.#http = new Http(options);
  }

  /**
   * Hands work to an agent. It always carries an Idempotency-Key, so a 503 or a cut connection is simply
   * tried again: the work is accepted once.
   */
  delegate(input: DelegateInput, options: DelegateOptions = {}): Promise<Delegated> {
    const { idempotencyKey = crypto.randomUUID(), waitSeconds, signal } = options;
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

  /** The delegation as it stands, or with `waitSeconds` (up to 60) once it is finished or asks something. */
  get(
    id: string,
    options: { waitSeconds?: number; signal?: AbortSignal | undefined } = {},
  ): Promise<Delegation> {
    const { waitSeconds = 0, signal } = options;
    return this.#http.persist(delegationSchema, {
      path: route`/v1/delegations/${id}`,
      query: { wait_seconds: waitSeconds > 0 ? seconds(waitSeconds) : undefined },
      signal,
      holdSeconds: waitSeconds,
    });
  }

  /** Until it is finished or asks something; throws `wait_ran_out` (TIMEOUT) after `timeoutSeconds`. */
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
        // A gateway that is shutting down answers early; do not spin on it.
        if (performance.now() - askedAt < 250) await sleep(250, limit.signal);
      }
    } catch (error) {
      throw limit.expired ? waitRanOut(id, timeoutSeconds) : error;
    } finally {
      limit.close();
    }
  }

  /**
   * Events as they happen, across reconnects, nothing skipped and nothing twice. One delegation: starts with
   * a snapshot and ends after the terminal event. A filter: starts now and goes on until the signal aborts.
   * With `after` (an event's id, or `0`) it resumes behind that event.
   */
  async *watch(
    what: string | EventFilter,
    options: { after?: string | undefined; signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<StreamEvent, void> {
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

  /** The delegation, canceled. A second cancel is no error; any other end is `already_finished`. */
  cancel(id: string, reason?: string, options: { signal?: AbortSignal } = {}): Promise<Delegation> {
    return this.#http.persist(delegationSchema, {
      method: "POST",
      path: route`/v1/delegations/${id}/cancel`,
      body: reason === undefined ? {} : { reason },
      signal: options.signal,
    });
  }

  async #now(path: string, query: Record<string, string | undefined>, signal?: AbortSignal): Promise<string> {
    const { cursor } = await this.#http.persist(cursorSchema, {
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
