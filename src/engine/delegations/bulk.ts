/**
 * Redrives or cancels many delegations of an agent, newest first. Limit: each call reads a bounded number; the caller
 * continues with `next_before`.
 */

import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { isOutOfMemory, isUnavailable } from "../../redis/errors.ts";
import { LIVE_STATES, type State } from "../../schema/delegation.ts";
import { ERRORS, ErrandError, type ErrorCode } from "../../schema/errors.ts";
import type { BulkRequest } from "../../schema/interrupt.ts";
import { toInstant } from "../../schema/values.ts";
import { type Principal, requireOperator } from "../access/access.ts";
import { type Moves, type Warns, warn } from "../after-move.ts";
import type { Records } from "../broker.ts";
import { type AuditWriter, audit } from "../upkeep/audit.ts";
import { cancelIfLive } from "./cancel.ts";
import type { Submits } from "./delegate.ts";
import { instantOf, type Lists, list } from "./list.ts";
import { redriveRecord } from "./redrive.ts";

/** A delegation that was refused, and why. */
export interface Refused {
  readonly delegation_id: string;
  readonly code: ErrorCode;
  readonly detail: string;
}

export interface Bulk {
  readonly records: readonly StoredDelegation[];
  readonly refused: readonly Refused[];
  /** The `before` of the next call; null: nothing is left. */
  readonly next_before: string | null;
}

/** Null for an error that would also stop the next delegation: the agent is gone, its queue is full, Redis is away. */
function refusedAs(broker: Warns, delegation_id: string, error: unknown): Refused | null {
  if (error instanceof ErrandError) {
    const { category } = ERRORS[error.code];
    // A quota stops only one delegator: delegations of others can still be redriven.
    const isShared = error.code !== "quota_exceeded" && (category === "TRANSPORT" || category === "CONFIG");
    if (isShared) return null;
    return { delegation_id, code: error.code, detail: error.message };
  }
  if (isUnavailable(error) || isOutOfMemory(error)) return null;
  warn(broker, error, "one delegation of a bulk request failed");
  return { delegation_id, code: "internal", detail: ERRORS.internal.title };
}

/** One call reads at most this many pages of 100 delegations. */
const MAX_PAGES = 20;

/** Calls `work` for delegations of an agent, newest first, until `limit` are done or none is left. */
async function inBulk(
  broker: Lists & Warns,
  principal: Principal,
  request: BulkRequest,
  state: readonly State[],
  work: (record: StoredDelegation) => Promise<StoredDelegation | null>,
): Promise<Bulk> {
  await broker.agents.get(request.target);
  const records: StoredDelegation[] = [];
  const refused: Refused[] = [];
  let before = request.before;
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const found = await list(broker, principal, {
      target: request.target,
      error_code: request.error_code,
      state,
      until: before,
      cursor,
      limit: 100,
    });
    for (const record of found.records) {
      if (records.length === request.limit) return { records, refused, next_before: before ?? null };
      let done: StoredDelegation | null = null;
      try {
        done = await work(record);
      } catch (error) {
        const one = refusedAs(broker, record.id, error);
        // Return the finished ones; the next call starts with the delegation that failed.
        if (!one && records.length === 0) throw error;
        if (!one) return { records, refused, next_before: toInstant(record.get("created_at") + 1) };
        refused.push(one);
      }
      if (done) records.push(done);
      before = toInstant(record.get("created_at") + 1);
    }
    if (found.next_cursor === null) return { records, refused, next_before: null };
    cursor = found.next_cursor;
    // The position advances also after a page without a match.
    before = toInstant(instantOf(cursor) + 1);
  }
  return { records, refused, next_before: before ?? null };
}

/** False when the replacement was refused or never written: then it can be redriven again. */
async function isRedriven(broker: Records, failed: StoredDelegation): Promise<boolean> {
  const redriven_as = failed.get("redriven_as");
  return redriven_as !== null && (await readRecord(broker.redis, broker.shards, redriven_as)) !== null;
}

export async function redriveMany(
  broker: Submits & Lists,
  principal: Principal,
  request: BulkRequest,
): Promise<Bulk> {
  requireOperator(principal, "redrive in bulk");
  const bulk = await inBulk(broker, principal, request, ["failed"], async (record) =>
    (await isRedriven(broker, record)) ? null : redriveRecord(broker, principal, record),
  );
  await auditBulk(broker, principal, "delegations.redrive", request, bulk);
  return bulk;
}

export async function cancelMany(
  broker: Moves & Lists & AuditWriter,
  principal: Principal,
  request: BulkRequest,
): Promise<Bulk> {
  requireOperator(principal, "cancel in bulk");
  const options = { reason: "canceled in bulk" };
  const bulk = await inBulk(broker, principal, request, LIVE_STATES, (record) =>
    cancelIfLive(broker, principal.text, record.id, options),
  );
  await auditBulk(broker, principal, "delegations.cancel", request, bulk);
  return bulk;
}

async function auditBulk(
  broker: AuditWriter,
  principal: Principal,
  action: "delegations.redrive" | "delegations.cancel",
  { target, error_code, before }: BulkRequest,
  { records }: Bulk,
): Promise<void> {
  if (records.length > 0)
    await audit(broker, principal, action, target, { error_code, before, count: records.length });
}
