/**
 * What a delegation still owes when its move is made: the cancel of its children, calls to who is told of it. The record
 * says so until it is done, so the sweep finishes what a dying gateway began. Limit: at least once; each step may be
 * repeated.
 */
import type { PendingEvents } from "../../lifecycle/writer.ts";
import { warn } from "../after-move.ts";
import type { Broker, PendingDeliveries } from "../broker.ts";
import { queueCallbacks } from "./callbacks.ts";
import { queuePushes } from "./push-notifications/deliver.ts";

/** Does what is owed; resolves when it is done, or left to the sweep. */
export async function deliverPending(broker: Broker, id: string, owed: PendingDeliveries): Promise<void> {
  try {
    if (owed.pending_events) await tell(broker, id, owed.pending_events);
    if (owed.cascade === undefined) return;
    await broker.cascades.run(id, { by: owed.cascade, claim: owed.claimed_until ?? 0 });
  } catch (error) {
    warn(broker, error, "follow-up not done; the sweep will");
  }
}

/** What the record says is noted as done once it is queued; what came meanwhile is its own move's to see to. */
async function tell(broker: Broker, id: string, { seq, to }: PendingEvents): Promise<void> {
  if (to !== 2) await queueCallbacks(broker, id);
  if (to !== 1) await queuePushes(broker, id);
  await broker.writer.move({ move: "follow_up", id, params: { notified: seq } });
}
