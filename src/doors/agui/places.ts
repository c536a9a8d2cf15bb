/**
 * The places of artifacts among the messages of the history. The record has both, but only the events have their order.
 * Limit: if a lost lease dropped some artifacts, those that remain are placed at the end.
 */
import type { Broker } from "../../engine/broker.ts";
import { storedEvents } from "../../engine/events/subscribe.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { Delegation } from "../../schema/delegation.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { dropsArtifacts, fieldsOf, historyAdded } from "./entry-fields.ts";
import type { Places } from "./messages.ts";

export async function placesOf(
  broker: Broker,
  record: StoredDelegation,
  { history, artifacts }: Delegation,
  signal: StopSignal,
): Promise<Places> {
  const places = new Map<string, number>();
  // The usual case has only one of the two, so there is no order to find.
  if (history.length === 0 || artifacts.length === 0) return places;
  let length = 0;
  for await (const entry of storedEvents(broker, record, signal)) {
    const fields = fieldsOf(entry);
    if (dropsArtifacts(entry, fields)) places.clear();
    const { artifact, artifacts: more = [] } = fields;
    for (const { artifactId } of artifact ? [artifact, ...more] : more) {
      if (!places.has(artifactId)) places.set(artifactId, length);
    }
    length += historyAdded(entry, fields);
  }
  return places;
}
