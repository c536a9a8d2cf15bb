/** A delegation as the lists show it: a few fields, kept current by its events. */
import * as z from "zod";
import {
  type Delegation,
  delegationErrorSchema,
  type Interrupt,
  isTerminal,
  type Progress,
  progressSchema,
  type State,
} from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { taskEnd } from "./task-end.ts";

export interface ListedLease {
  readonly expires_at: string;
  /** How long a heartbeat extends it, if that is known. A heartbeat without progress has no event. */
  readonly ms?: number | undefined;
}

export interface ListedDelegation
  extends Pick<
    Delegation,
    | "id"
    | "state"
    | "version"
    | "target"
    | "delegator"
    | "task_preview"
    | "created_at"
    | "updated_at"
    | "not_before_at"
    | "attempt"
  > {
  /** How the task ends, unless it is long. */
  readonly task_end?: string;
  readonly progress: Progress | null;
  readonly lease: ListedLease | null;
  readonly interrupt: Interrupt | null;
  /** The error in words. */
  readonly error: string | null;
  readonly finished_at: string | null;
}

export function toListed(delegation: Delegation): ListedDelegation {
  const { id, state, version, target, delegator, task_preview, created_at, updated_at } = delegation;
  const { not_before_at, attempt, progress, lease, interrupt, finished_at, error } = delegation;
  return {
    ...{ id, state, version, target, delegator, task_preview, created_at, updated_at },
    ...{ not_before_at, attempt, progress, interrupt, finished_at },
    task_end: taskEnd(delegation.message),
    lease: lease && { expires_at: lease.expires_at },
    error: error === null ? null : error.message || error.code,
  };
}

const optional = <T>(schema: z.ZodType<T>) => schema.optional().catch(undefined);
/** The fields of some events; a field of another shape counts as absent. */
const detailsSchema = z.object({
  status: optional(z.string()),
  progress: optional(progressSchema),
  attempt: optional(z.number()),
  expires_at: optional(z.string()),
  error: optional(delegationErrorSchema.pick({ code: true, message: true })),
  task_preview: optional(z.string()),
});

/** The delegation after the event. Null if the event lacks a field that is needed: read the delegation instead. */
export function afterEvent(
  listed: ListedDelegation | undefined,
  event: DelegationEvent,
): ListedDelegation | null {
  const details = detailsSchema.parse(event);
  if (event.type === "DELEGATION_SENT") return departure(event, details.task_preview ?? "");
  if (listed === undefined || event.seq !== listed.version + 1) return null;
  // The question itself is in the delegation.
  if (asks(event.state)) return null;
  return {
    ...listed,
    state: event.state,
    version: event.seq,
    updated_at: event.at,
    interrupt: null,
    progress: event.state === "submitted" ? null : (details.progress ?? listed.progress),
    attempt: details.attempt ?? listed.attempt,
    lease: event.state === "working" ? leaseAfter(listed.lease, event.at, details) : null,
    ...(isTerminal(event.state) && {
      finished_at: event.at,
      error: details.error ? details.error.message || details.error.code : null,
    }),
  };
}

function leaseAfter(
  lease: ListedLease | null,
  at: string,
  { status, expires_at }: z.infer<typeof detailsSchema>,
): ListedLease | null {
  // `broker_away` is the only other one: it counts from the end of the outage.
  if (expires_at !== undefined) {
    const isPeriod = status === "leased" || status === "reclaimed";
    return { ms: isPeriod ? Date.parse(expires_at) - Date.parse(at) : lease?.ms, expires_at };
  }
  if (status !== "progress" || lease?.ms === undefined) return lease;
  return { ...lease, expires_at: new Date(Date.parse(at) + lease.ms).toISOString() };
}

function departure(event: DelegationEvent, task_preview: string): ListedDelegation | null {
  // When it may start is in the delegation.
  if (event.status === "delayed") return null;
  return {
    ...{
      id: event.delegation_id,
      state: event.state,
      version: event.seq,
      target: event.target,
      task_preview,
    },
    ...{ delegator: event.delegator, created_at: event.at, updated_at: event.at },
    ...{ not_before_at: null, attempt: 1 },
    ...{ progress: null, lease: null, interrupt: null, error: null, finished_at: null },
  };
}

export const asks = (state: State): boolean => state === "input_required" || state === "auth_required";
