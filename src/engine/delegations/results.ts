/**
 * The caller's inbox: its delegations that finished or asked a question, by cursor. Limit: each is shown in its current
 * state, so a question that was answered in the meantime is not shown.
 */

import type { Positions } from "../../events/cursor.ts";
import { type Entry, isApprovedQuestion } from "../../events/entry.ts";
import { MOVES } from "../../lifecycle/states.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { readSummaries } from "../../lifecycle/summary.ts";
import { TERMINAL_EVENT_TYPES } from "../../schema/event.ts";
import type { Principal } from "../access/access.ts";
import type { Broker, BulkReads } from "../broker.ts";
import { collectPage, type Streams, subscribe, subscribedEvents } from "../events/subscribe.ts";
import type { Lists } from "./list.ts";
import { countFitting, readMany } from "./read-many.ts";

/** Which results; default: all of the caller's own. */
export interface Wanted {
  /** Of these delegations, also of other delegators. */
  readonly ids?: ReadonlySet<string> | undefined;
  readonly context_id?: string | undefined;
}

export async function results(
  broker: Lists & Streams & Pick<Broker, "redis">,
  principal: Principal,
  after: Positions,
  options: { wait_seconds: number; limit: number; signal: AbortSignal },
  { ids: named, context_id }: Wanted = {},
): Promise<{ records: StoredDelegation[]; positions: Positions }> {
  const delegator = named === undefined ? principal.text : undefined;
  const { source, filter } = await subscribe(broker, principal, { delegator, context_id });
  const subscription = {
    source,
    filter: {
      ...filter,
      matches: (entry: Entry) =>
        isNews(entry) &&
        named?.has(entry.delegation_id) !== false &&
        !isApprovedQuestion(entry) &&
        filter.matches?.(entry) !== false,
    },
  };
  const page = await collectPage(
    (signal) => subscribedEvents(broker, subscription, after, signal),
    { ...options, turn: () => broker.readLimiter.acquire(principal) },
    (event) => ("entry" in event ? { id: event.entry.delegation_id, positions: event.positions } : undefined),
  );
  const ids = [...new Set(page.items.map(({ id }) => id))];
  if (ids.length === 0) return { records: [], positions: page.positions ?? after };
  return broker.readLimiter.run(principal, () => readPage(broker, page, ids, after));
}

/** It ended, or asked. While a question is held, its delegation has other events, too. */
const isNews = ({ type, status }: Entry): boolean =>
  TERMINAL_EVENT_TYPES.some((one) => one === type) || status === MOVES.interrupt.status;

interface Found {
  readonly items: readonly { readonly id: string; readonly positions: Positions }[];
  readonly positions: Positions | undefined;
}

/** Reads as many of the delegations as fit into one response. */
async function readPage(
  broker: BulkReads,
  page: Found,
  ids: readonly string[],
  after: Positions,
): Promise<{ records: StoredDelegation[]; positions: Positions }> {
  const summaries = await readSummaries(broker.bulk, broker.shards, ids);
  const count = countFitting(summaries);
  const rest = new Set(ids.slice(count));
  // The next page begins with the first event of a delegation that does not fit.
  const end = page.items.findIndex(({ id }) => rest.has(id));
  return {
    records: await readMany(broker, summaries.slice(0, count)),
    positions: (end === -1 ? page.positions : page.items[end - 1]?.positions) ?? after,
  };
}
