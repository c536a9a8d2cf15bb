/**
 * Lists delegations, last updated first. There is no index by update, because every move would have to write it, so a
 * stretch of the index by creation is read and sorted. Limit: the order holds within each stretch of 1 000 records; a
 * record that changes between two pages moves to the front.
 */

import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { type RecordSummary, readSummaries } from "../../lifecycle/summary.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { Principal } from "../access/access.ts";
import type { Scans } from "../broker.ts";
import { isBehind, type ListQuery, type Lists, matches, type Position, scan, toPlan } from "./list.ts";
import { countFitting, readMany } from "./read-many.ts";

const STRETCH = 1_000;
const NEWEST: Position = { at: Number.POSITIVE_INFINITY, id: "" };

export interface ListByUpdateQuery
  extends Pick<ListQuery, "target" | "context_id" | "state" | "cursor" | "limit"> {
  /** Only delegations that changed at this time or later, ms. */
  readonly changed_since?: number | undefined;
}

/** Where a page ended: after `behind`, in the stretch that begins after `from`. */
interface Cursor {
  readonly from: Position;
  readonly behind: Position;
}

function parseCursor(cursor: string | undefined): Cursor {
  if (cursor === undefined) return { from: NEWEST, behind: NEWEST };
  const match = /^(\d{0,16})\.(\w*)\.(\d{0,16})\.(\w*)$/.exec(cursor);
  if (!match) {
    throw new ErrandError("invalid_request", "The pageToken is not valid.", {
      details: { issues: [{ path: "pageToken", reason: "send back nextPageToken unchanged" }] },
    });
  }
  const position = (at = "", id = ""): Position => (at === "" ? NEWEST : { at: Number(at), id });
  return { from: position(match[1], match[2]), behind: position(match[3], match[4]) };
}

const formatPosition = ({ at, id }: Position): string =>
  at === Number.POSITIVE_INFINITY ? "." : `${at}.${id}`;

const changedAt = (summary: RecordSummary): Position => ({ at: summary.get("updated_at"), id: summary.id });

/** `total` is the number of matches in the stretch, so it is exact if the index has at most 1 000 records. */
export function listByUpdate(
  broker: Lists,
  principal: Principal,
  query: ListByUpdateQuery,
): Promise<ListByUpdatePage> {
  return broker.readLimiter.run(principal, () => page(broker, principal, query));
}

export interface ListByUpdatePage {
  readonly records: StoredDelegation[];
  readonly next_cursor: string | null;
  readonly total: number;
}

async function page(
  broker: Scans,
  principal: Principal,
  query: ListByUpdateQuery,
): Promise<ListByUpdatePage> {
  const { from, behind } = parseCursor(query.cursor);
  const { found, next } = await scanStretch(broker, principal, query, from);
  found.sort((a, b) => (isBehind(changedAt(a), changedAt(b)) ? -1 : 1));
  const rest = found.filter((summary) => isBehind(behind, changedAt(summary)));
  const shown = rest.slice(0, Math.min(query.limit, countFitting(rest)));
  const last = shown.at(-1);
  const records = await readMany(broker, shown);
  if (last && shown.length < rest.length) {
    return {
      records,
      next_cursor: `${formatPosition(from)}.${formatPosition(changedAt(last))}`,
      total: found.length,
    };
  }
  return {
    records,
    next_cursor: next && `${formatPosition(next)}.${formatPosition(NEWEST)}`,
    total: found.length,
  };
}

async function scanStretch(
  broker: Scans,
  principal: Principal,
  query: ListByUpdateQuery,
  from: Position,
): Promise<{ found: RecordSummary[]; next: Position | null }> {
  const { cursor: _own, changed_since = 0, ...filter } = query;
  const plan = await toPlan(broker, principal, filter);
  const found: RecordSummary[] = [];
  let position = from;
  for (let scanned = 0; scanned < Math.max(STRETCH, plan.most); ) {
    const positions = await scan(broker, plan, position);
    const last = positions.at(-1);
    if (!last) return { found, next: null };
    const summaries = await readSummaries(
      broker.bulk,
      broker.shards,
      positions.map(({ id }) => id),
    );
    for (const summary of summaries) {
      if (!summary || summary.get("updated_at") < changed_since) continue;
      if (await matches(broker, principal, filter, summary)) found.push(summary);
    }
    position = last;
    scanned += positions.length;
  }
  return { found, next: position };
}
