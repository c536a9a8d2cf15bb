/** A delegation as the lists show it: a few fields, kept current by its events. */
import {
  type Delegation,
  type Interrupt,
  isTerminal,
  type Progress,
  type State,
} from "../../schema/delegation.ts";
import type { DelegationEvent, SentEvent } from "../../schema/event.ts";
import { errorText } from "../ui/error-text.ts";
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
    | "awaits"
    | "behind"
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
  const { not_before_at, attempt, progress, lease, interrupt, finished_at, error, awaits, behind } =
    delegation;
  return {
    ...{ id, state, version, target, delegator, task_preview, created_at, updated_at },
    ...{ not_before_at, attempt, progress, interrupt, finished_at, awaits, behind },
    task_end: taskEnd(delegation.message),
    lease: lease && { expires_at: lease.expires_at },
    error: error && errorText(error),
  };
}

/** The delegation after the event. Null if the event lacks a field that is needed: read the delegation instead. */
export function afterEvent(
  listed: ListedDelegation | undefined,
  event: DelegationEvent,
): ListedDelegation | null {
  if (event.type === "DELEGATION_SENT") return departure(event);
  if (event.type === "UNKNOWN" || listed === undefined || event.seq !== listed.version + 1) return null;
  // The question itself is in the delegation.
  if (asks(event.state)) return null;
  return {
    ...listed,
    state: event.state,
    version: event.seq,
    updated_at: event.at,
    interrupt: null,
    awaits: "awaits" in event ? event.awaits : undefined,
    behind: event.status === "message" ? listed.behind : undefined,
    progress:
      event.state === "submitted" ? null : event.status === "progress" ? event.progress : listed.progress,
    attempt: ("attempt" in event ? event.attempt : undefined) ?? listed.attempt,
    lease: event.state === "working" ? leaseAfter(listed.lease, event) : null,
    ...(isTerminal(event.state) && {
      finished_at: event.at,
      error: event.type === "DELEGATION_FAILED" ? errorText(event.error) : null,
    }),
  };
}

function leaseAfter(lease: ListedLease | null, event: DelegationEvent): ListedLease | null {
  switch (event.status) {
    case "leased":
    case "reclaimed":
      return {
        ms: Date.parse(event.expires_at) - Date.parse(event.at),
        expires_at: event.expires_at,
      };
    // It counts from the end of the outage.
    case "broker_away":
      return { ms: lease?.ms, expires_at: event.expires_at };
    case "progress":
      return lease?.ms === undefined
        ? lease
        : { ...lease, expires_at: new Date(Date.parse(event.at) + lease.ms).toISOString() };
    default:
      return lease;
  }
}

function departure(event: SentEvent): ListedDelegation {
  return {
    ...{
      id: event.delegation_id,
      state: event.state,
      version: event.seq,
      target: event.target,
      task_preview: event.task_preview,
    },
    ...{ delegator: event.delegator, created_at: event.at, updated_at: event.at },
    ...{ not_before_at: event.not_before_at ?? null, attempt: 1, behind: event.behind },
    ...{ progress: null, lease: null, interrupt: null, error: null, finished_at: null },
  };
}

export const asks = (state: State): boolean => state === "input_required" || state === "auth_required";
