/**
 * Searches the newest delegations for what a list cannot filter by: an open question, or messages. Reads summaries and
 * messages only, and one whole record: the one that it finds. Limit: a search reads a bounded number of pages.
 */
import { readMessages } from "../../lifecycle/read-messages.ts";
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { RecordSummary } from "../../lifecycle/summary.ts";
import type { Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { findSummaries, type ListQuery, matches } from "./list.ts";
import { readAtOnce } from "./read-many.ts";

/** Each page scans up to a thousand delegations. */
const PAGES = 10;

/** Selects one of these summaries, which are in the order of the list. */
type Select = (
  summaries: readonly RecordSummary[],
) => RecordSummary | undefined | Promise<RecordSummary | undefined>;

export type SearchQuery = Omit<ListQuery, "limit" | "cursor"> & {
  /** The most delegations to search; absent: all that the pages have. */
  readonly most?: number;
};

/** The newest delegation that matches the query and asks one of these questions. */
export const findByQuestion = (
  broker: Broker,
  principal: Principal,
  query: SearchQuery,
  interruptIds: readonly string[],
): Promise<StoredDelegation | null> =>
  search(broker, principal, query, (summaries) =>
    summaries.find(({ interrupt_id }) => interrupt_id !== null && interruptIds.includes(interrupt_id)),
  );

/** The newest delegation that matches the query and whose messages, as {@link readMessages} returns them, fit. */
export const findByMessages = (
  broker: Broker,
  principal: Principal,
  query: SearchQuery,
  fits: (messages: readonly string[]) => boolean,
): Promise<StoredDelegation | null> =>
  search(broker, principal, query, async (summaries) => {
    for (const some of readAtOnce(summaries)) {
      const read = await Promise.all(some.map(({ id }) => readMessages(broker.bulk, broker.shards, id)));
      const at = read.findIndex((messages) => messages !== null && fits(messages));
      if (at >= 0) return some[at];
    }
    return undefined;
  });

/** The newest delegation that matches the query. */
export const findNewest = (
  broker: Broker,
  principal: Principal,
  query: SearchQuery,
): Promise<StoredDelegation | null> => search(broker, principal, { ...query, most: 1 }, ([newest]) => newest);

const search = (
  broker: Broker,
  principal: Principal,
  query: SearchQuery,
  select: Select,
): Promise<StoredDelegation | null> =>
  broker.readLimiter.run(principal, async () => {
    for await (const summaries of pages(broker, principal, query)) {
      const selected = await select(summaries);
      const record = selected && (await readRecord(broker.bulk, broker.shards, selected.id));
      // Checked again: the record may have changed since it was found.
      if (record && (await matches(broker, principal, { ...query, limit: 1 }, record))) return record;
    }
    return null;
  });

async function* pages(
  broker: Broker,
  principal: Principal,
  { most = Number.POSITIVE_INFINITY, ...query }: SearchQuery,
): AsyncGenerator<readonly RecordSummary[], void, undefined> {
  let left = most;
  let cursor: string | undefined;
  for (let page = 0; page < PAGES && left > 0; page += 1) {
    const { summaries, next_cursor } = await findSummaries(broker, principal, {
      ...query,
      limit: left,
      cursor,
    });
    yield summaries;
    if (next_cursor === null) return;
    left -= summaries.length;
    cursor = next_cursor;
  }
}
