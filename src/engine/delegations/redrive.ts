/**
 * Delegating anew what failed, once for each failure. Limit: it is new work: it queues behind what waits, and may be
 * refused like any other; asked again then, the same id is tried.
 */
import { readRecord, type StoredDelegation } from "../../lifecycle/record.ts";
import { isOutOfMemory, isUnavailable } from "../../redis/errors.ts";
import { messageInputSchema } from "../../schema/a2a.ts";
import { delegateRequestSchema, LIVE_STATES, type State } from "../../schema/delegation.ts";
import { ERRORS, ErrandError, type ErrorCode } from "../../schema/errors.ts";
import type { BulkRequest } from "../../schema/interrupt.ts";
import { toInstant } from "../../schema/values.ts";
import { type Principal, requireControl, requireOperator, toPrincipal } from "../access/access.ts";
import { warn } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { refusal } from "../errors.ts";
import { audit } from "../upkeep/audit.ts";
import { cancelIfLive } from "./cancel.ts";
import { submit } from "./delegate.ts";
import { instantOf, list } from "./list.ts";
import { read } from "./read.ts";

/** Returns the delegation that takes its place; the same one however often it is asked for. */
export async function redrive(broker: Broker, principal: Principal, id: string): Promise<StoredDelegation> {
  const failed = await read(broker, principal, id);
  requireControl(principal, failed, "redrive it");
  if (principal.kind === "approver") {
    throw new ErrandError("forbidden", "Approvers may not redrive; the delegator and the operator may.", {
      delegation_id: id,
      delegation_valid: !failed.finished,
    });
  }
  return again(broker, failed);
}

async function again(broker: Broker, failed: StoredDelegation): Promise<StoredDelegation> {
  const newId = broker.shards.newDelegationId(failed.target);
  const { outcome } = await broker.writer.move({
    move: "redrive",
    id: failed.id,
    params: { new_id: newId },
  });
  if (outcome.kind === "state") {
    throw new ErrandError(
      "wrong_state",
      `Delegation ${failed.id} is ${outcome.state}; only what failed is redriven.`,
      {
        delegation_id: failed.id,
        delegation_valid: !failed.finished,
      },
    );
  }
  if (outcome.kind !== "ok" && outcome.kind !== "redriven") throw refusal(outcome, failed.id);
  const id = outcome.kind === "redriven" ? outcome.redriven_as : newId;
  const earlier = id === newId ? null : await readRecord(broker.redis, broker.shards, id);
  if (earlier) return earlier;
  const parent = failed.parent_id && (await readRecord(broker.redis, broker.shards, failed.parent_id));
  const asked = delegateRequestSchema.parse({
    target: failed.target,
    message: messageInputSchema.parse(JSON.parse(failed.message)),
    context_id: failed.context_id,
    priority: failed.priority,
    max_attempts: failed.max_attempts,
    metadata: JSON.parse(failed.metadata),
    ...(failed.callback !== null && { callback: JSON.parse(failed.callback) }),
    // What it was a part of may be over; then it stands by itself.
    ...(parent && !parent.finished && { parent_id: parent.id }),
  });
  // As much time as it had, which may exceed the largest ttl_seconds of a request.
  const ttl_seconds = (failed.deadline_at - (failed.not_before_at ?? failed.created_at)) / 1000;
  const request = { ...asked, ttl_seconds };
  const traceparent = failed.traceparent ?? undefined;
  const made = await submit(broker, toPrincipal(failed.delegator), request, id, {
    redriveOf: failed.id,
    traceparent,
  });
  const record = made ?? (await readRecord(broker.redis, broker.shards, id));
  if (!record) throw refusal({ kind: "missing", now: 0 }, id);
  return record;
}

/** A delegation that was refused, and why; the others were done. */
export interface Refused {
  readonly delegation_id: string;
  readonly code: ErrorCode;
  readonly detail: string;
}

export interface Bulk {
  readonly records: readonly StoredDelegation[];
  readonly refused: readonly Refused[];
  /** Go on with this `before`; null: there is nothing left. */
  readonly next_before: string | null;
}

/** Null for an error that the next delegation would meet, too: the agent is gone, the queue full, Redis away. */
function refusedAs(broker: Broker, delegation_id: string, error: unknown): Refused | null {
  if (error instanceof ErrandError) {
    const { category } = ERRORS[error.code];
    // A quota is one delegator's own: delegations of others can still be redriven.
    const isShared = error.code !== "quota_exceeded" && (category === "TRANSPORT" || category === "CONFIG");
    if (isShared) return null;
    return { delegation_id, code: error.code, detail: error.message };
  }
  if (isUnavailable(error) || isOutOfMemory(error)) return null;
  warn(broker, error, "one of a bulk request failed");
  return { delegation_id, code: "internal", detail: ERRORS.internal.title };
}

/** Delegations looked at in one call. */
const MAX_PAGES = 20;

/** Does it to delegations of an agent, newest first, until enough are done or there are no more. */
async function inBulk(
  broker: Broker,
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
        // Return what is done already; the next call starts with the delegation that failed.
        if (!one && records.length === 0) throw error;
        if (!one) return { records, refused, next_before: toInstant(record.created_at + 1) };
        refused.push(one);
      }
      if (done) records.push(done);
      before = toInstant(record.created_at + 1);
    }
    if (found.next_cursor === null) return { records, refused, next_before: null };
    cursor = found.next_cursor;
    // A page without a hit is a step, too.
    before = toInstant(instantOf(cursor) + 1);
  }
  return { records, refused, next_before: before ?? null };
}

/** One whose new delegation was refused, or cut short, is still to be redriven. */
async function isRedriven(broker: Broker, { redriven_as }: StoredDelegation): Promise<boolean> {
  return redriven_as !== null && (await readRecord(broker.redis, broker.shards, redriven_as)) !== null;
}

export async function redriveMany(broker: Broker, principal: Principal, request: BulkRequest): Promise<Bulk> {
  requireOperator(principal, "redrive in bulk");
  const bulk = await inBulk(broker, principal, request, ["failed"], async (record) =>
    (await isRedriven(broker, record)) ? null : again(broker, record),
  );
  await note(broker, principal, "delegations.redrive", request, bulk);
  return bulk;
}

export async function cancelMany(broker: Broker, principal: Principal, request: BulkRequest): Promise<Bulk> {
  requireOperator(principal, "cancel in bulk");
  const options = { reason: "canceled in bulk", cascade: true };
  const bulk = await inBulk(broker, principal, request, LIVE_STATES, (record) =>
    cancelIfLive(broker, principal.text, record.id, options),
  );
  await note(broker, principal, "delegations.cancel", request, bulk);
  return bulk;
}

async function note(
  broker: Broker,
  principal: Principal,
  action: "delegations.redrive" | "delegations.cancel",
  { target, error_code, before }: BulkRequest,
  { records }: Bulk,
): Promise<void> {
  if (records.length > 0)
    await audit(broker, principal, action, target, { error_code, before, count: records.length });
}
