/**
 * The outbox of a delegation: what a move requires besides the record. It marks awaited children, reports the delegation's
 * own end and what its tree has used to its parent, cancels its children, and calls its receivers. The record lists all of
 * it until it is done, so the sweep finishes it if the gateway dies. At least once; each step may repeat.
 */
import type { PendingEvents } from "../../lifecycle/outcome.ts";
import { readRecord } from "../../lifecycle/stored-delegation.ts";
import { warn } from "../after-move.ts";
import type { Broker, PendingDeliveries } from "../broker.ts";
import { callbackJobs, queueCallbacks } from "./callbacks.ts";
import { expectEnds, reportEnd } from "./child-ends.ts";
import { pushJobs, queuePushes } from "./push-notifications/deliver.ts";
import { reportSpent } from "./spent.ts";

/** Resolves when all deliveries are done, or left to the sweep. A failure of one kind leaves the others alone. */
export async function deliverPending(broker: Broker, id: string, pending: PendingDeliveries): Promise<void> {
  const {
    expecting,
    reports_to,
    spends_to,
    spent,
    pending_events,
    calls_at,
    cascade,
    cascade_all,
    claimed_until = 0,
  } = pending;
  const calls = async () => {
    if (pending_events) await queueCalls(broker, id, pending_events);
    if (calls_at !== undefined) await restoreCalls(broker, id, calls_at);
  };
  // First what it has used: the end may queue the parent, whose worker then sees the sum.
  const toParent = async () => {
    if (spends_to !== undefined && spent !== undefined) await reportSpent(broker, id, spends_to, spent);
    if (reports_to !== undefined) await reportEnd(broker, id, reports_to);
  };
  const done = await Promise.allSettled([
    expecting === undefined ? undefined : expectEnds(broker, id, expecting),
    toParent(),
    calls(),
    cascade === undefined
      ? undefined
      : broker.cascades.run(id, { by: cascade, claim: claimed_until, all: cascade_all === 1 }),
  ]);
  for (const result of done)
    if (result.status === "rejected")
      warn(broker, result.reason, "pending delivery failed; the sweep retries it");
}

/** Marks events as queued once their calls are. Newer events belong to the move that wrote them. */
async function queueCalls(broker: Broker, id: string, { seq, to }: PendingEvents): Promise<void> {
  const tooOld = to === 2 ? [] : await queueCallbacks(broker, id);
  if (to !== 1) await queuePushes(broker, id);
  const params = { notified: seq, called: tooOld.map(String) };
  await broker.writer.move({ move: "follow_up", id, params });
}

/**
 * Queues the calls again whose jobs are gone: removed by a tool of BullMQ, or given up after errors. When no call is left,
 * the sweep no longer looks.
 */
async function restoreCalls(broker: Broker, id: string, calls_at: number): Promise<void> {
  const record = await readRecord(broker.redis, broker.shards, id);
  if (!record) return;
  const left = [
    ...callbackJobs(record),
    ...(await pushJobs(broker, id)),
    ...broker.pushAgents.cancelJobs(record),
  ];
  for (const job of left) {
    if (await broker.outbound.restore(job))
      broker.log.warn({ delegation_id: id, call: job.kind }, "lost call queued again");
  }
  if (left.length === 0) await broker.writer.move({ move: "follow_up", id, params: { settled: calls_at } });
}
