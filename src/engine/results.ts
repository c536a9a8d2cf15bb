/**
 * The caller's inbox: what it delegated that finished or asks something, by cursor. Limit: shows each delegation as
 * it stands now, so one that asked and was answered meanwhile shows its present state.
 */
import type { Positions } from "../events/cursor.ts";
import type { Entry } from "../events/entry.ts";
import { readRecord, type StoredDelegation } from "../lifecycle/record.ts";
import type { Principal } from "./access.ts";
import type { Broker } from "./context.ts";
import { collect, follow, subscribe } from "./watch.ts";

export async function results(
  broker: Broker,
  principal: Principal,
  after: Positions,
  options: { wait_seconds: number; limit: number; signal: AbortSignal },
): Promise<{ records: StoredDelegation[]; positions: Positions }> {
  const { source, filter } = await subscribe(broker, principal, { delegator: principal.text });
  const subscription = {
    source,
    filter: {
      ...filter,
      matches: (entry: Entry) =>
        entry.state !== "submitted" && entry.state !== "working" && filter.matches?.(entry) !== false,
    },
  };
  const page = await collect(
    (signal) => follow(broker, subscription, after, signal),
    options,
    (event) => ("entry" in event ? event.entry.delegation_id : undefined),
  );
  const ids = [...new Set(page.items)];
  const records = await Promise.all(ids.map((id) => readRecord(broker.redis, broker.shards, id)));
  return {
    records: records.filter((record) => record !== null),
    positions: page.positions ?? after,
  };
}
