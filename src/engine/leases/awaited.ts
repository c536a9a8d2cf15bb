/**
 * The children that a delegation waited for, for its next holder. Limit: whole children up to {@link WHOLE_BYTES}
 * together, those first that were named first; of the others only the state.
 */
import * as z from "zod";
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { type RecordSummary, readSummaries } from "../../lifecycle/summary.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { BulkReads } from "../broker.ts";

const WHOLE_BYTES = LIMITS.awaited_bytes.value;
/** About the size of a record without its bodies. */
const HEAD_BYTES = 2_048;
const AT_ONCE = 16;

const idsSchema = z.array(z.string());

/** The ids of the children that a delegation waits for, or waited for last; empty: it never did. */
export function awaitedIds(record: StoredDelegation): readonly string[] {
  const json = record.get("awaits");
  return json === null ? [] : idsSchema.parse(JSON.parse(json));
}

/** `awaited` of a lease or an answer, as JSON text. `by`: the principal that reads it. */
export async function awaitedJson(
  broker: BulkReads,
  ids: readonly string[],
  outcome: "ended" | "time_limit",
  by: string,
): Promise<string> {
  const summaries = await readSummaries(broker.bulk, broker.shards, ids);
  const whole = await readWhole(broker, summaries, by);
  const children = ids.map((id, at) => {
    const state = summaries[at]?.get("state") ?? null;
    const record = whole.get(id);
    const shown = record === undefined ? "" : `,"delegation":${record.json}`;
    return `{"delegation_id":"${id}","state":${JSON.stringify(state)}${shown}}`;
  });
  return `{"outcome":"${outcome}","children":[${children.join(",")}]}`;
}

async function readWhole(
  broker: BulkReads,
  summaries: readonly (RecordSummary | null)[],
  by: string,
): Promise<ReadonlyMap<string, StoredDelegation>> {
  const whole = new Map<string, StoredDelegation>();
  let bytes = 0;
  const fitting = summaries.filter((summary): summary is RecordSummary => {
    if (!summary?.finished || summary.get("delegator") !== by) return false;
    const size = summary.get("bytes") + HEAD_BYTES;
    if (bytes + size > WHOLE_BYTES) return false;
    bytes += size;
    return true;
  });
  for (let from = 0; from < fitting.length; from += AT_ONCE) {
    const some = fitting.slice(from, from + AT_ONCE);
    const records = await Promise.all(some.map(({ id }) => readRecord(broker.bulk, broker.shards, id)));
    for (const record of records) if (record) whole.set(record.id, record);
  }
  return whole;
}
