/**
 * Reading one delegation, and waiting for it. Limit: a wait ends with the connection or the deadline, never
 * with the delegation: nobody's leaving aborts work.
 */
import { readRecord, type StoredDelegation } from "../../lifecycle/record.ts";
import type { PollSignal } from "../../queue/parked-polls.ts";
import { canSee, type Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { notFound } from "../errors.ts";

/** Throws `delegation_not_found` for what does not exist and for what does not concern the caller. */
export async function read(broker: Broker, principal: Principal, id: string): Promise<StoredDelegation> {
  const record = await readRecord(broker.redis, broker.shards, id);
  if (!record) throw notFound(id);
  return seen(broker, principal, record);
}

/** It is finished, or waits for an answer. */
export const isSettled = ({ finished, state }: StoredDelegation): boolean =>
  finished || state.endsWith("_required");

export interface WaitOptions {
  readonly wait_seconds: number;
  /** Wait for a greater version instead of for the end or a question. */
  readonly after_version?: number | undefined;
  /** As it was just read or written; saves reading it again when nothing can have happened since. */
  readonly known?: StoredDelegation | undefined;
  readonly signal: PollSignal;
}

/** Returns the delegation when it is finished or asks something, or as it stands when the time is up. */
export async function readWhenReady(
  broker: Broker,
  principal: Principal,
  id: string,
  options: WaitOptions,
): Promise<StoredDelegation> {
  const { after_version } = options;
  const isReady = (record: StoredDelegation): boolean =>
    after_version === undefined ? isSettled(record) : record.version > after_version || record.finished;
  const waiter = broker.handoff.waitFor(id, options, {
    record: isReady,
    entry: ({ state, seq }) =>
      after_version === undefined ? state !== "submitted" && state !== "working" : seq > after_version,
  });
  try {
    // Read after the wait began, so that no event falls between.
    const { known } = options;
    const record = known && waiter.isCurrent(known) ? known : await read(broker, principal, id);
    if (isReady(record) || options.wait_seconds === 0) return record;
    const changed = await waiter.done();
    return changed ? await seen(broker, principal, changed) : await read(broker, principal, id);
  } finally {
    waiter.stop();
  }
}

/** The delegation as JSON text, with the checkpoint for those whose business it is. */
export function shownWhole(principal: Principal, { json, checkpoint, target }: StoredDelegation): string {
  const isTheirs = principal.kind === "operator" || (principal.kind === "agent" && principal.name === target);
  return checkpoint === null || !isTheirs ? json : `${json.slice(0, -1)},"checkpoint":${checkpoint}}`;
}

/** The record, if it concerns the caller. */
async function seen(
  broker: Broker,
  principal: Principal,
  record: StoredDelegation,
): Promise<StoredDelegation> {
  if (!(await canSee(broker, principal, record))) throw notFound(record.id);
  return record;
}
