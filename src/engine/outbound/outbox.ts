/**
 * The outbox of a delegation: the deliveries that a move requires, which are the cancel of its children and the calls to
 * its receivers. The record lists them until they are done, so the sweep finishes them if the gateway dies. At least
 * once; each step may repeat.
 */
import type { PendingEvents } from "../../lifecycle/outcome.ts";
import { warn } from "../after-move.ts";
import type { Broker, PendingDeliveries } from "../broker.ts";
import { queueCallbacks } from "./callbacks.ts";
import { queuePushes } from "./push-notifications/deliver.ts";

/** Resolves when all deliveries are done, or left to the sweep. */
export async function deliverPending(broker: Broker, id: string, pending: PendingDeliveries): Promise<void> {
  try {
    if (pending.pending_events) await queueCalls(broker, id, pending.pending_events);
    if (pending.cascade === undefined) return;
    await broker.cascades.run(id, { by: pending.cascade, claim: pending.claimed_until ?? 0 });
  } catch (error) {
    warn(broker, error, "pending delivery failed; the sweep retries it");
  }
}

/** Marks events as delivered once their calls are queued. Newer events belong to the move that wrote them. */
async function queueCalls(broker: Broker, id: string, { seq, to }: PendingEvents): Promise<void> {
  if (to !== 2) await queueCallbacks(broker, id);
  if (to !== 1) await queuePushes(broker, id);
  await broker.writer.move({ move: "follow_up", id, params: { notified: seq } });
}
