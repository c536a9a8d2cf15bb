/**
 * The children that a delegation waited for, for its holder. Limit: in the order of the request, each whole
 * that still fits into {@link WHOLE_BYTES} together; of the others only the state.
 */
import * as z from "zod";
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { type RecordSummary, readSummaries } from "../../lifecycle/summary.ts";
import type { Awaited } from "../../schema/await.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Principal } from "../access/access.ts";
import type { Broker, BulkReads } from "../broker.ts";
import { groupsToRead } from "../delegations/read-many.ts";

const WHOLE_BYTES = LIMITS.awaited_bytes.value;
/** In place of a state, of a child that had no record when its end was counted. */
export const GONE = "-";

export type AwaitedReads = BulkReads & Pick<Broker, "readLimiter">;

const idsSchema = z.array(z.string());
/** The ids of the children that a delegation waits for, or waited for last; null: it never did. */
export function awaitedIds(record: StoredDelegation): readonly string[] | null {
  const json = record.get("awaits");
  return json === null ? null : idsSchema.parse(JSON.parse(json));
}

/** `awaited` of a lease or an answer, as JSON text. `target`: the agent that gets it. */
export function awaitedJson(
  broker: AwaitedReads,
  principal: Principal,
  id: string,
  ids: readonly string[],
  outcome: Awaited["outcome"],
  target: string,
): Promise<string> {
  return broker.readLimiter.run(principal, async () => {
    const summaries = await readSummaries(broker.bulk, broker.shards, ids);
    const whole = await readWhole(broker, summaries, `agent:${target}`);
    const states = summaries.includes(null) ? await countedStates(broker, id) : {};
    const children = ids.map((child, at) => {
      const counted = states[child] ?? "";
      const state = summaries[at]?.get("state") ?? (counted === "" || counted === GONE ? null : counted);
      const json = whole.get(child);
      const shown = json === undefined ? "" : `,"delegation":${json}`;
      return `{"delegation_id":"${child}","state":${JSON.stringify(state)}${shown}}`;
    });
    return `{"outcome":"${outcome}","children":[${children.join(",")}]}`;
  });
}

/** The states in which children ended whose records are deleted by now. */
async function countedStates({ bulk, shards }: BulkReads, id: string): Promise<Record<string, string>> {
  const keys = shards.ofId(id);
  return keys ? bulk.hgetall(keys.awaits(id)) : {};
}

/** The JSON texts of those that have ended and that the principal `by` delegated, each that still fits into the limit. */
async function readWhole(
  broker: BulkReads,
  summaries: readonly (RecordSummary | null)[],
  by: string,
): Promise<ReadonlyMap<string, string>> {
  const shown = summaries.filter((one) => one?.finished && one.get("delegator") === by);
  const whole = new Map<string, string>();
  let left = WHOLE_BYTES;
  for (const group of groupsToRead(shown)) {
    // `bytes` is a lower bound of the text's length.
    const fitting = group.filter((summary) => summary.get("bytes") < left);
    const records = await Promise.all(fitting.map(({ id }) => readRecord(broker.bulk, broker.shards, id)));
    for (const record of records) {
      const bytes = record ? Buffer.byteLength(record.json) : left + 1;
      if (!record || bytes > left) continue;
      whole.set(record.id, record.json);
      left -= bytes;
    }
  }
  return whole;
}
