/**
 * Reading many records whole without holding them all up: so many bytes to an answer, a few records at a time. Limit:
 * one record is always read, however large.
 */

import { readRecord, type StoredDelegation } from "../../lifecycle/record.ts";
import type { RecordSummary } from "../../lifecycle/summary.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Broker } from "../broker.ts";

/** Bytes of bodies that one answer holds; then its page ends and the cursor moves. */
export const PAGE_BYTES = LIMITS.page_bytes.value;
/** What a record has beside its bodies, about. */
const HEAD_BYTES = 2_048;
const AT_ONCE = 16;
const AT_ONCE_BYTES = 1024 * 1024;

const sizeOf = (outline: RecordSummary | null): number => (outline === null ? 0 : outline.bytes + HEAD_BYTES);

/** How many of them, from the first on, one answer holds; at least one. */
export function fitting(outlines: readonly (RecordSummary | null)[]): number {
  let size = 0;
  const at = outlines.findIndex((outline, index) => {
    size += sizeOf(outline);
    return size > PAGE_BYTES && index > 0;
  });
  return at === -1 ? outlines.length : at;
}

/** In their order, without those that are gone. */
export async function readWhole(
  broker: Broker,
  outlines: readonly (RecordSummary | null)[],
): Promise<StoredDelegation[]> {
  const records: StoredDelegation[] = [];
  for (let from = 0; from < outlines.length; ) {
    let size = 0;
    let to = from;
    do size += sizeOf(outlines[to++] ?? null);
    while (to < outlines.length && to - from < AT_ONCE && size < AT_ONCE_BYTES);
    const some = outlines.slice(from, to).filter((outline) => outline !== null);
    const read = await Promise.all(some.map(({ id }) => readRecord(broker.bulk, broker.shards, id)));
    records.push(...read.filter((record) => record !== null));
    from = to;
  }
  return records;
}
