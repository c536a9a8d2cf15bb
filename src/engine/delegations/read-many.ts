/** Reads many whole records for one response, a few at a time. Limit: the first is always read, however large it is. */
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { RecordSummary } from "../../lifecycle/summary.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { BulkReads } from "../broker.ts";

/** A page ends at this many bytes of bodies. */
export const PAGE_BYTES = LIMITS.page_bytes.value;
/** About the size of a record without its bodies. */
const HEAD_BYTES = 2_048;
const AT_ONCE = 16;
const AT_ONCE_BYTES = 1024 * 1024;

const sizeOf = (summary: RecordSummary | null): number =>
  summary === null ? 0 : summary.get("bytes") + HEAD_BYTES;

/** How many of the first records fit into one response; at least one. */
export function countFitting(summaries: readonly (RecordSummary | null)[]): number {
  let size = 0;
  const at = summaries.findIndex((summary, index) => {
    size += sizeOf(summary);
    return size > PAGE_BYTES && index > 0;
  });
  return at === -1 ? summaries.length : at;
}

/** In the given order; deleted ones are left out. */
export async function readMany(
  broker: BulkReads,
  summaries: readonly (RecordSummary | null)[],
): Promise<StoredDelegation[]> {
  const records: StoredDelegation[] = [];
  for (const some of groupsToRead(summaries)) {
    const read = await Promise.all(some.map(({ id }) => readRecord(broker.bulk, broker.shards, id)));
    records.push(...read.filter((record) => record !== null));
  }
  return records;
}

/** Groups of records that may be read at the same time. */
export function* groupsToRead(summaries: readonly (RecordSummary | null)[]): Generator<RecordSummary[]> {
  for (let from = 0; from < summaries.length; ) {
    let size = 0;
    let to = from;
    do size += sizeOf(summaries[to++] ?? null);
    while (to < summaries.length && to - from < AT_ONCE && size < AT_ONCE_BYTES);
    yield summaries.slice(from, to).filter((summary) => summary !== null);
    from = to;
  }
}
