/**
 * What a delegator's calls may be told. Every `signal` ends its call with the signal's own reason. Limit: shapes only.
 */
import type { EventType } from "../schema/event.ts";

export interface DelegateOptions {
  /**
   * Up to 255 printable ASCII characters; the same key finds the same delegation for 24 h. Default: a new random
   * one for each call. Give your own to find the delegation again after a crash of your own.
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * How long the answer may wait for the end, in whole seconds up to 60; the delegation then comes finished, or
   * asking, if it got so far. Default 0.
   */
  readonly waitSeconds?: number | undefined;
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
