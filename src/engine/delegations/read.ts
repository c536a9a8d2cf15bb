/** Reads one delegation, or waits for it. Limit: when a waiting client leaves, only the wait ends, not the work. */
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { isPending } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { canRead, canSeeNode, type Principal } from "../access/access.ts";
import type { Broker, Reads } from "../broker.ts";
import { notFound } from "../errors.ts";

/** Throws `delegation_not_found` for a delegation that does not exist or that the caller may not see. */
export async function read(broker: Reads, principal: Principal, id: string): Promise<StoredDelegation> {
  const record = await readIfKept(broker, principal, id);
  if (!record) throw notFound(id);
  return record;
}

/** As {@link read}, but null for a delegation that does not exist. */
export async function readIfKept(
  broker: Reads,
  principal: Principal,
  id: string,
): Promise<StoredDelegation | null> {
  const record = await readRecord(broker.redis, broker.shards, id);
  return record && requireVisible(broker, principal, record);
}

/** True when the delegation is finished or waits for an answer. */
export const isSettled = (record: StoredDelegation): boolean => !isPending(record.get("state"));

export interface WaitOptions {
  readonly wait_seconds: number;
  /** Wait for a later version instead of the end or a question. */
  readonly after_version?: number | undefined;
  /** The record as just read or written; saves a read if it cannot have changed since. */
  readonly known?: StoredDelegation | undefined;
  readonly signal: StopSignal;
}

/** Returns the delegation when it is finished or asks a question, or as it is when the time is up. */
export async function readWhenReady(
  broker: Reads & Pick<Broker, "handoff">,
  principal: Principal,
  id: string,
  options: WaitOptions,
): Promise<StoredDelegation> {
  const { after_version } = options;
  const isReady = (record: StoredDelegation): boolean =>
    after_version === undefined
      ? isSettled(record)
      : record.get("version") > after_version || record.finished;
  const waiter = broker.handoff.waitFor(id, options, {
    record: isReady,
    entry: ({ state, seq }) => (after_version === undefined ? !isPending(state) : seq > after_version),
  });
  const startedAt = performance.now();
  let changed: StoredDelegation;
  try {
    // Read after the wait began, so that no event falls between.
    const { known } = options;
    const record = known && waiter.isCurrent(known) ? known : await read(broker, principal, id);
    if (isReady(record) || options.wait_seconds === 0) return record;
    const moved = await waiter.done();
    changed = moved ? await requireVisible(broker, principal, moved) : await read(broker, principal, id);
  } finally {
    waiter.stop();
  }
  const seconds = (performance.now() - startedAt) / 1000;
  if (isReady(changed) || seconds >= options.wait_seconds || options.signal.aborted) return changed;
  // The delegation asked a question that is answered already.
  return readWhenReady(broker, principal, id, {
    ...options,
    wait_seconds: options.wait_seconds - seconds,
    known: changed,
  });
}

/** The delegation as JSON text; only the operator and the target see the checkpoint. */
export function delegationJson(principal: Principal, record: StoredDelegation): string {
  const { json } = record;
  const checkpoint = record.get("checkpoint");
  const seesCheckpoint =
    principal.kind === "operator" || (principal.kind === "agent" && principal.name === record.get("target"));
  return checkpoint === null || !seesCheckpoint ? json : `${json.slice(0, -1)},"checkpoint":${checkpoint}}`;
}

/** For the delegator of the root, which sees its place in the tree. */
function unreadablePart(record: StoredDelegation): ErrandError {
  const { id } = record;
  const [[root] = [id]] = record.get("ancestors");
  const target = record.get("target");
  return new ErrandError(
    "delegation_not_found",
    `You may not read ${id}, which ${record.get("delegator")} delegated to ${target}; you see its state in the tree of ${root}.`,
    {
      delegation_id: id,
      recovery: `Read or watch the tree of ${root}. To read the part whole, ask the operator to set tree_reads of ${target} to contents.`,
    },
  );
}

/** Throws `delegation_not_found` when the caller may not see it. */
async function requireVisible(
  broker: Pick<Broker, "agents">,
  principal: Principal,
  record: StoredDelegation,
): Promise<StoredDelegation> {
  if (await canRead(broker, principal, record)) return record;
  // To all others it does not exist.
  throw (await canSeeNode(broker, principal, record)) ? unreadablePart(record) : notFound(record.id);
}
