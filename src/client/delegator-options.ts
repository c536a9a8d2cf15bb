/**
 * What a delegator's calls may be told. Every `signal` ends its call with the signal's own reason. Limit: shapes, and how
 * the options become a part of what is sent.
 */
import type { Callback } from "../schema/callback.ts";
import type { DelegateInput } from "../schema/delegation.ts";
import type { EventType } from "../schema/event.ts";

/** An instant: a Date, or ISO 8601. */
export type Instant = Date | string;

export interface DelegateOptions {
  /**
   * Up to 255 printable ASCII characters. The same key finds the same delegation for as long as its record is kept, and
   * for at least 24 h (`already_finished` once it is deleted). Default: a new random key for each call. Set one to find
   * the delegation again after your process crashed.
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * How long the answer may wait for the end, in whole seconds up to 60; the delegation then comes finished, or
   * asking, if it got so far. Default 0.
   */
  readonly waitSeconds?: number | undefined;
  /** The delegation that this one is a part of: one that you may see, and live. */
  readonly parentId?: string | undefined;
  /** Where its questions and its end are told ({@link verifyCallback} checks what comes there). */
  readonly callback?: Callback | undefined;
  /** Not handed out before; this or `delaySeconds`. */
  readonly notBefore?: Instant | undefined;
  /** Not handed out for so many seconds. */
  readonly delaySeconds?: number | undefined;
  /** Failed (`deadline_exceeded`) if not finished by then; this or `ttlSeconds`. */
  readonly deadline?: Instant | undefined;
  /** Failed (`deadline_exceeded`) if not finished so many seconds after it may be handed out. Default 7 days. */
  readonly ttlSeconds?: number | undefined;
  /** Failed (`not_picked_up`) if nobody took it within so many seconds. */
  readonly startWithinSeconds?: number | undefined;
  /** W3C trace context, kept and handed to the agent. */
  readonly traceparent?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface GetOptions {
  /** Up to 60: answer once it is finished or asks something, or as it stands when the time is up. Default 0. */
  readonly waitSeconds?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WaitOptions {
  /** Any time, across as many calls as it takes. Default: without end. */
  readonly timeoutSeconds?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WatchOptions {
  /** Resume behind the event with this `id`; `0` is the beginning. */
  readonly after?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ListOptions {
  /** How many one call fetches, 1 to 100. Default 20; each may be megabytes. */
  readonly pageSize?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface CancelOptions {
  /** `false` leaves alone what was delegated under it. */
  readonly cascade?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Which events to watch; what is given must all hold. */
export interface EventFilter {
  /** The agent's name. */
  readonly target?: string | undefined;
  /** A principal, for example `caller:alice`. */
  readonly delegator?: string | undefined;
  readonly delegation_id?: string | undefined;
  readonly context_id?: string | undefined;
  readonly types?: readonly EventType[] | undefined;
}

const iso = (instant: Instant): string => (typeof instant === "string" ? instant : instant.toISOString());

/** The options that are a part of what is sent; they win over what the input says. */
export function withOptions(input: DelegateInput, options: DelegateOptions): DelegateInput {
  const { parentId, callback, notBefore, delaySeconds, deadline, ttlSeconds, startWithinSeconds } = options;
  return {
    ...input,
    ...(parentId !== undefined && { parent_id: parentId }),
    ...(callback !== undefined && { callback }),
    ...(notBefore !== undefined && { not_before: iso(notBefore) }),
    ...(delaySeconds !== undefined && { delay_seconds: delaySeconds }),
    ...(deadline !== undefined && { deadline: iso(deadline) }),
    ...(ttlSeconds !== undefined && { ttl_seconds: ttlSeconds }),
    ...(startWithinSeconds !== undefined && { start_within_seconds: startWithinSeconds }),
  };
}
