/**
 * Searches the newest delegations for what a list cannot filter by: an open question, or messages. Reads summaries and
 * messages only, and one whole record: the one that it finds. Limit: a search reads a bounded number of pages.
 */
import { type MessageTexts, readMessages } from "../../lifecycle/read-messages.ts";
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { RecordSummary } from "../../lifecycle/summary.ts";
import type { Principal } from "../access/access.ts";
import type { Scans } from "../broker.ts";
import { findSummaries, type ListQuery, type Lists, matches } from "./list.ts";
import { groupsToRead } from "./read-many.ts";

/** Each page scans up to a thousand delegations. */
const PAGES = 10;
/** A search that every message of a thread may cost. */
const FEW_PAGES = 3;

/** Selects one of these summaries, which are in the order of the list. */
type Select = (
  summaries: readonly RecordSummary[],
) => RecordSummary | undefined | Promise<RecordSummary | undefined>;

export type SearchQuery = Omit<ListQuery, "limit" | "cursor">;

interface Bounds {
  /** The most delegations to search; absent: all that the pages have. */
  readonly most?: number;
  readonly pages: number;
}

export interface MessageSearch {
  readonly most: number;
  /** A message that fits has one of these parts in its JSON text; see {@link readMessages}. */
  readonly parts: readonly string[];
  readonly includes: (messages: MessageTexts) => boolean;
}

/** The newest delegation that matches the query and asks one of these questions. */
export const findByQuestion = (
  broker: Lists,
  principal: Principal,
  query: SearchQuery,
  interruptIds: readonly string[],
): Promise<StoredDelegation | null> =>
  search(broker, principal, query, { pages: PAGES }, (summaries) =>
    summaries.find(({ interrupt_id }) => interrupt_id !== null && interruptIds.includes(interrupt_id)),
  );

/** The newest live delegation that matches the query and has such a message; without a live one, the newest. */
export async function findByMessages(
  broker: Lists,
  principal: Principal,
  query: SearchQuery,
  { most, parts, includes }: MessageSearch,
): Promise<StoredDelegation | null> {
  let finished: RecordSummary | undefined;
  const live = await search(broker, principal, query, { most, pages: FEW_PAGES }, async (summaries) => {
    for (const some of groupsToRead(summaries)) {
      const read = await Promise.all(
        some.map(({ id }) => readMessages(broker.bulk, broker.shards, id, parts)),
      );
      const found = some.filter((_, at) => {
        const messages = read[at];
        return messages ? includes(messages) : false;
      });
      finished ??= found.find((summary) => summary.finished);
      const first = found.find((summary) => !summary.finished);
      if (first) return first;
    }
    return undefined;
  });
  return live ?? (finished ? readMatching(broker, principal, query, finished) : null);
}

/** The newest delegation that matches the query. */
export const findNewest = (
  broker: Lists,
  principal: Principal,
  query: SearchQuery,
): Promise<StoredDelegation | null> =>
  search(broker, principal, query, { most: 1, pages: FEW_PAGES }, ([newest]) => newest);

/** Null if the record, which may have changed since it was found, does not match. */
async function readMatching(
  broker: Scans,
  principal: Principal,
  query: SearchQuery,
  { id }: RecordSummary,
): Promise<StoredDelegation | null> {
  const record = await readRecord(broker.bulk, broker.shards, id);
  return record && (await matches(broker, principal, { ...query, limit: 1 }, record)) ? record : null;
}

const search = (
  broker: Lists,
  principal: Principal,
  query: SearchQuery,
  bounds: Bounds,
  select: Select,
): Promise<StoredDelegation | null> =>
  broker.readLimiter.run(principal, async () => {
    for await (const summaries of pagesOf(broker, principal, query, bounds)) {
      const selected = await select(summaries);
      const record = selected && (await readMatching(broker, principal, query, selected));
      if (record) return record;
    }
    return null;
  });

async function* pagesOf(
  broker: Scans,
  principal: Principal,
  query: SearchQuery,
  { most = Number.POSITIVE_INFINITY, pages }: Bounds,
): AsyncGenerator<readonly RecordSummary[], void, undefined> {
  let left = most;
  let cursor: string | undefined;
  for (let page = 0; page < pages && left > 0; page += 1) {
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
