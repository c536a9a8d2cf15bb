/**
 * Lists of delegations, the last to change first. There is no index by change, which every move would have to pay for:
 * a stretch of the index by making is sorted as it is read. Limit: the order holds within each stretch of a thousand;
 * what changes between two pages moves to the front.
 */

import type { StoredDelegation } from "../../lifecycle/record.ts";
import { type RecordSummary, readSummaries } from "../../lifecycle/summary.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { type ListQuery, matches, type Place, scan, toPlan } from "./list.ts";
import { fitting, readWhole } from "./read-many.ts";

const STRETCH = 1_000;
const NEWEST: Place = { at: Number.POSITIVE_INFINITY, id: "" };

export interface ListByUpdateQuery
  extends Pick<ListQuery, "target" | "context_id" | "state" | "cursor" | "limit"> {
  /** Only what changed then or later, ms. */
  readonly changed_since?: number | undefined;
}

/** Where a page ended: in the stretch behind `from`, at what changed then. */
interface Cursor {
  readonly from: Place;
  readonly behind: Place;
}

function parseCursor(cursor: string | undefined): Cursor {
  if (cursor === undefined) return { from: NEWEST, behind: NEWEST };
  const match = /^(\d{0,16})\.(\w*)\.(\d{0,16})\.(\w*)$/.exec(cursor);
  if (!match) {
    throw new ErrandError("invalid_request", "This is not a token of a list.", {
      details: { issues: [{ path: "pageToken", reason: "send back the token as it was given" }] },
    });
  }
  const place = (at = "", id = ""): Place => (at === "" ? NEWEST : { at: Number(at), id });
  return { from: place(match[1], match[2]), behind: place(match[3], match[4]) };
}

const written = ({ at, id }: Place): string => (at === Number.POSITIVE_INFINITY ? "." : `${at}.${id}`);

/** In order: the last to change first, then by id. */
const changedAt = ({ updated_at, id }: RecordSummary): Place => ({ at: updated_at, id });
const isBehind = (place: Place, { at, id }: Place): boolean =>
  at < place.at || (at === place.at && id < place.id);

/** `total` counts what was looked at; it is all there is unless more follows behind a thousand. */
export function listByUpdate(
  broker: Broker,
  principal: Principal,
  query: ListByUpdateQuery,
): Promise<ListByUpdatePage> {
  return broker.turns.run(principal, () => page(broker, principal, query));
}

export interface ListByUpdatePage {
  readonly records: StoredDelegation[];
  readonly next_cursor: string | null;
  readonly total: number;
}

async function page(
  broker: Broker,
  principal: Principal,
  query: ListByUpdateQuery,
): Promise<ListByUpdatePage> {
  const { from, behind } = parseCursor(query.cursor);
  const { found, next } = await stretch(broker, principal, query, from);
  found.sort((a, b) => (isBehind(changedAt(a), changedAt(b)) ? -1 : 1));
  const left = found.filter((outline) => isBehind(behind, changedAt(outline)));
  const shown = left.slice(0, Math.min(query.limit, fitting(left)));
  const last = shown.at(-1);
  const records = await readWhole(broker, shown);
  if (last && shown.length < left.length) {
    return { records, next_cursor: `${written(from)}.${written(changedAt(last))}`, total: found.length };
  }
  return { records, next_cursor: next && `${written(next)}.${written(NEWEST)}`, total: found.length };
}

async function stretch(
  broker: Broker,
  principal: Principal,
  query: ListByUpdateQuery,
  from: Place,
): Promise<{ found: RecordSummary[]; next: Place | null }> {
  const { cursor: _own, changed_since = 0, ...filter } = query;
  const plan = await toPlan(broker, principal, filter);
  const found: RecordSummary[] = [];
  let place = from;
  for (let scanned = 0; scanned < Math.max(STRETCH, plan.most); ) {
    const places = await scan(broker, plan, place);
    const last = places.at(-1);
    if (!last) return { found, next: null };
    const outlines = await readSummaries(
      broker.bulk,
      broker.shards,
      places.map(({ id }) => id),
    );
    for (const outline of outlines) {
      if (!outline || outline.updated_at < changed_since) continue;
      if (await matches(broker, principal, filter, outline)) found.push(outline);
    }
    place = last;
    scanned += places.length;
  }
  return { found, next: place };
}
