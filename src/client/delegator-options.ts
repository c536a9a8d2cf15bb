/** The options of a delegator's calls. When a `signal` aborts, its call throws the signal's reason. */
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
   * How long the call waits until the delegation is finished or asks a question, in whole seconds up to 60. Default 0:
   * returns at once.
   */
  readonly waitSeconds?: number | undefined;
  /** The id of the parent, a live delegation that you may see. */
  readonly parentId?: string | undefined;
  /** The endpoint that is called when it asks a question or ends. Verify the calls with {@link verifyCallback}. */
  readonly callback?: Callback | undefined;
  /** No worker gets it before this instant. Set this or `delaySeconds`. */
  readonly notBefore?: Instant | undefined;
  /** No worker gets it for this many seconds. */
  readonly delaySeconds?: number | undefined;
  /** It fails (`deadline_exceeded`) if it is not finished by then. Set this or `ttlSeconds`. */
  readonly deadline?: Instant | undefined;
  /** It fails (`deadline_exceeded`) if it is not finished this many seconds after it may start. Default 7 days. */
  readonly ttlSeconds?: number | undefined;
  /** It fails (`not_picked_up`) if no worker takes it within this many seconds. */
  readonly startWithinSeconds?: number | undefined;
  /** W3C trace context, passed to the agent. */
  readonly traceparent?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ControlOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface AnswerOptions extends ControlOptions {
  /**
   * Up to 255 printable ASCII characters. A repeated call with the same key is the same answer and succeeds; without it,
   * a second answer to a question of kind `auth` is `interrupt_not_open`, even if it is equal. Default: a new random key
   * for each call. Set one to repeat the call after your process crashed.
   */
  readonly idempotencyKey?: string | undefined;
}

export interface GetOptions {
  /** Waits up to this many seconds (at most 60) until it is finished or asks a question. Default 0. */
  readonly waitSeconds?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WaitOptions {
  /** Any number of seconds, across several calls if needed. Default: no limit. */
  readonly timeoutSeconds?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WatchOptions {
  /**
   * Resume after the event with this `id`; `0` is the beginning. If a delegation waits for an answer to a question that was
   * asked before, a snapshot with this `id` shows it first.
   */
  readonly after?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ListOptions {
  /** How many delegations one request fetches, 1 to 100. Default 20, because each may have megabytes. */
  readonly pageSize?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface CancelOptions {
  /** Whether to cancel its children, too. Default true. */
  readonly cascade?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Selects events; all given conditions must hold. */
export interface EventFilter {
  /** The agent's name. */
  readonly target?: string | undefined;
  /** A principal, for example `caller:alice`. */
  readonly delegator?: string | undefined;
  readonly delegation_id?: string | undefined;
  readonly context_id?: string | undefined;
  readonly types?: readonly EventType[] | undefined;
}

/** What {@link DelegateOptions} say; in a batch, which has no options, the items say it. */
type SaidByOptions =
  | "parent_id"
  | "callback"
  | "not_before"
  | "delay_seconds"
  | "deadline"
  | "ttl_seconds"
  | "start_within_seconds";

/** The work as text, or as an A2A Message for more than a text. */
type Content =
  | { readonly task: string; readonly message?: undefined }
  | { readonly message: NonNullable<DelegateInput["message"]>; readonly task?: undefined };

/** Work for an agent: `target`, and either `task` or `message`. Times and limits are options. */
export type TaskInput = Omit<DelegateInput, SaidByOptions | keyof Content> & {
  readonly [Name in SaidByOptions]?: undefined;
} & Content;

const iso = (instant: Instant): string => (typeof instant === "string" ? instant : instant.toISOString());

/** A request in its form on the wire, as the two arguments of `delegate`. */
export function toArguments(
  request: Omit<DelegateInput, keyof Content> & Content,
): [input: TaskInput, options: DelegateOptions] {
  const { parent_id, callback, not_before, delay_seconds, deadline, ...rest } = request;
  const { ttl_seconds, start_within_seconds, ...input } = rest;
  return [
    input,
    {
      ...{ parentId: parent_id, callback, notBefore: not_before, delaySeconds: delay_seconds, deadline },
      ...{ ttlSeconds: ttl_seconds, startWithinSeconds: start_within_seconds },
    },
  ];
}

/** The body of the request. */
export function withOptions(input: TaskInput, options: DelegateOptions): object {
  const { parentId, callback, notBefore, delaySeconds, deadline, ttlSeconds, startWithinSeconds } = options;
  const said = {
    ...(parentId !== undefined && { parent_id: parentId }),
    ...(callback !== undefined && { callback }),
    ...(notBefore !== undefined && { not_before: iso(notBefore) }),
    ...(delaySeconds !== undefined && { delay_seconds: delaySeconds }),
    ...(deadline !== undefined && { deadline: iso(deadline) }),
    ...(ttlSeconds !== undefined && { ttl_seconds: ttlSeconds }),
    ...(startWithinSeconds !== undefined && { start_within_seconds: startWithinSeconds }),
  };
  // The compiler refuses this, but not everybody has one.
  const given: Readonly<Record<string, unknown>> = { ...input };
  const twice = Object.keys(said).find((name) => given[name] !== undefined);
  if (twice !== undefined)
    throw new TypeError(`${twice} is given twice: in the first argument and as an option`);
  return { ...input, ...said };
}
