/**
 * Reading one delegation, and waiting for it. Limit: a wait ends with the connection or the deadline, never
 * with the delegation: nobody's leaving aborts work.
 */
import { readRecord, type StoredDelegation } from "../../lifecycle/record.ts";
import type { Leaving } from "../../queue/parked-polls.ts";
import { canSee, type Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { notFound } from "../errors.ts";
import { waitUntil } from "../events/wait.ts";

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
  readonly signal: Leaving;
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
  // Heard of from here on; read after that, so that no event falls between.
  const waiting = waitUntil(broker.feed, id, options, (entry) =>
    after_version === undefined
      ? entry.state !== "submitted" && entry.state !== "working"
      : entry.seq > after_version,
  );
  let given: StoredDelegation | undefined;
  const ungive = broker.awaited.add(id, (record) => {
    if (!isReady(record)) return;
    given = record;
    waiting.stop();
  });
  try {
    const { known } = options;
    const shard = broker.shards.indexOfId(id) ?? 0;
    const isNew = known && !broker.feed.mayHaveTold(shard, id, known.event_id);
    const record = isNew ? known : await read(broker, principal, id);
    if (isReady(record) || options.wait_seconds === 0) return record;
    await waiting.done;
    // The feed may be quicker than the answer to a move of this very gateway, which tells the same.
    if (!given) await broker.writer.underWay(id)?.catch(() => {});
    return given ? await seen(broker, principal, given) : await read(broker, principal, id);
  } finally {
    waiting.stop();
    ungive();
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
