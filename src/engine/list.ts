/**
 * Lists of delegations, newest first. Limit: one index is scanned, a bounded stretch at a time, and the other
 * conditions filter it, so a page may be short, or empty, while there is a next one.
 */
import { readRecord, type StoredDelegation } from "../lifecycle/record.ts";
import type { ShardKeys } from "../redis/keys.ts";
import { delegationErrorSchema } from "../schema/delegation.ts";
import { ErrandError } from "../schema/errors.ts";
import { canSee, type Principal, seesAll } from "./access.ts";
import type { Broker } from "./context.ts";

export interface ListQuery {
  readonly target?: string | undefined;
  readonly delegator?: string | undefined;
  readonly context_id?: string | undefined;
  readonly parent_id?: string | undefined;
  /** A state, or `live` for all that are not finished. */
  readonly state?: string | undefined;
  readonly error_code?: string | undefined;
  /** Made before this instant. */
  readonly before?: string | undefined;
  readonly cursor?: string | undefined;
  readonly limit: number;
}

/** Records looked at for one page. */
const SCAN = 500;
const BATCH = 100;

/** Where a page ended: nothing as new as this, or of this instant and before it by id, was shown yet. */
interface Place {
  readonly at: number;
  readonly id: string;
}

function toPlace({ cursor, before }: ListQuery): Place {
  if (cursor === undefined) {
    return { at: before === undefined ? Number.POSITIVE_INFINITY : Date.parse(before), id: "" };
  }
  const match = /^(\d{1,16})\.(dlg_[0-9a-z_]+)$/.exec(cursor);
  if (match) return { at: Number(match[1]), id: match[2] ?? "" };
  throw new ErrandError("invalid_request", "This is not a cursor of a list.", {
    details: { issues: [{ path: "cursor", reason: "send back next_cursor as it was given" }] },
  });
}

/** The narrowest index that holds the answer. */
function indexesOf(query: ListQuery, principal: Principal): string[] {
  if (query.parent_id !== undefined) return [`parent:${query.parent_id}`];
  if (query.context_id !== undefined) return [`context:${query.context_id}`];
  if (query.delegator !== undefined) return [`delegator:${query.delegator}`];
  if (query.target !== undefined) return [`target:${query.target}`];
  if (seesAll(principal)) return ["all"];
  const own = [`delegator:${principal.text}`];
  return principal.kind === "agent" ? [...own, `target:${principal.name}`] : own;
}

const isBehind = (place: Place, { at, id }: Place): boolean =>
  at < place.at || (at === place.at && id < place.id);
const newestFirst = (a: Place, b: Place): number => b.at - a.at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);

/** The next places behind `after`, over all indexes and shards, each once. */
async function scan(
  broker: Broker,
  shards: readonly ShardKeys[],
  indexes: readonly string[],
  after: Place,
): Promise<Place[]> {
  const max = after.at === Number.POSITIVE_INFINITY ? "+inf" : after.at;
  const found = new Map<string, Place>();
  const streams = shards.flatMap((shard) => indexes.map((index) => shard.list(index)));
  await Promise.all(
    streams.map(async (key) => {
      // Those of one instant are read over again until they are past.
      for (let offset = 0, fresh = 0; fresh < BATCH; offset += BATCH) {
        const flat = await broker.redis.zrevrangebyscore(
          key,
          max,
          "-inf",
          "WITHSCORES",
          "LIMIT",
          offset,
          BATCH,
        );
        for (let i = 0; i + 1 < flat.length; i += 2) {
          const place = { id: flat[i] ?? "", at: Number(flat[i + 1]) };
          if (!isBehind(after, place)) continue;
          found.set(place.id, place);
          fresh += 1;
        }
        if (flat.length < 2 * BATCH) return;
      }
    }),
  );
  return [...found.values()].sort(newestFirst).slice(0, BATCH);
}

async function matches(
  broker: Broker,
  principal: Principal,
  query: ListQuery,
  record: StoredDelegation,
): Promise<boolean> {
  if (query.target !== undefined && query.target !== record.target) return false;
  if (query.delegator !== undefined && query.delegator !== record.delegator) return false;
  if (query.context_id !== undefined && query.context_id !== record.context_id) return false;
  const state = query.state === "live" && !record.finished ? "live" : record.state;
  if (query.state !== undefined && query.state !== state) return false;
  if (query.error_code !== undefined && query.error_code !== errorCode(record)) return false;
  return canSee(broker, principal, record);
}

function errorCode(record: StoredDelegation): string | null {
  return record.error === null ? null : delegationErrorSchema.parse(JSON.parse(record.error)).code;
}

export async function list(
  broker: Broker,
  principal: Principal,
  query: ListQuery,
): Promise<{ records: StoredDelegation[]; next_cursor: string | null }> {
  const indexes = indexesOf(query, principal);
  const shards = query.target !== undefined ? [broker.shards.ofAgent(query.target)] : broker.shards.all;
  const records: StoredDelegation[] = [];
  let place = toPlace(query);
  for (let scanned = 0; scanned < SCAN; ) {
    const places = await scan(broker, shards, indexes, place);
    const batch = await Promise.all(places.map(({ id }) => readRecord(broker.redis, broker.shards, id)));
    for (const [at, record] of batch.entries()) {
      place = places[at] ?? place;
      scanned += 1;
      if (!record || !(await matches(broker, principal, query, record))) continue;
      records.push(record);
      if (records.length === query.limit) return { records, next_cursor: `${place.at}.${place.id}` };
    }
    if (places.length < BATCH) return { records, next_cursor: null };
  }
  return { records, next_cursor: `${place.at}.${place.id}` };
}
