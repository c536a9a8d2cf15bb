/**
 * Lists delegations, newest first. Limit: each page scans a bounded part of one index and filters it by the other
 * conditions, so a page may be short or empty although there is a next one.
 */

import type { Readable } from "../../lifecycle/fields.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { type RecordSummary, readSummaries } from "../../lifecycle/summary.ts";
import { contextIndex, type ShardKeys } from "../../redis/keys.ts";
import { delegationErrorSchema, type State } from "../../schema/delegation.ts";
import { canSee, type Principal, seesAll } from "../access/access.ts";
import type { Broker, Scans } from "../broker.ts";
import { invalidCursor } from "../list-cursor.ts";
import { countFitting, readMany } from "./read-many.ts";

/** To list delegations, large reads taking turns. */
export type Lists = Scans & Pick<Broker, "readLimiter">;

export interface ListQuery {
  readonly target?: string | undefined;
  readonly delegator?: string | undefined;
  readonly context_id?: string | undefined;
  readonly parent_id?: string | undefined;
  readonly state?: readonly State[] | undefined;
  readonly error_code?: string | undefined;
  /** Created at this instant or later. */
  readonly since?: string | undefined;
  /** Created before this instant. */
  readonly until?: string | undefined;
  /** Ended at this instant or later. */
  readonly ended_since?: string | undefined;
  /** A part of the preview; case does not matter. */
  readonly q?: string | undefined;
  readonly cursor?: string | undefined;
  readonly limit: number;
}

/** The most records that are read for one page. */
const SCAN = 1_000;
/** The most entries that one scan returns; fewer: the indexes end. */
export const BATCH = 100;

/** The last record that a page read: the next page has older records, and those of the same instant with a smaller id. */
export interface Position {
  readonly at: number;
  readonly id: string;
}

function startOf({ cursor, until }: ListQuery): Position {
  if (cursor === undefined) {
    return { at: until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until), id: "" };
  }
  const match = /^(\d{1,16})\.(dlg_[0-9a-z_]+)$/.exec(cursor);
  if (match) return { at: Number(match[1]), id: match[2] ?? "" };
  throw invalidCursor();
}

/** The instant in a page's cursor: the creation time of its last record, ms. */
export const instantOf = (cursor: string): number => startOf({ cursor, limit: 1 }).at;

/** Of delegations, or of their settled questions. */
type IndexPrefix = "" | "answers:";

/** The indexes that a page scans, and how far. */
interface Plan {
  readonly indexes: readonly string[];
  readonly shards: readonly ShardKeys[];
  /** Entries with a lower score, ms, are not scanned. */
  readonly oldest: number;
  /** The most entries to read. */
  readonly most: number;
}

function narrowest(query: Omit<ListQuery, "limit">): string | undefined {
  if (query.parent_id !== undefined) return `parent:${query.parent_id}`;
  if (query.context_id !== undefined) return contextIndex(query.context_id);
  if (query.delegator !== undefined) return `delegator:${query.delegator}`;
  return query.target === undefined ? undefined : `target:${query.target}`;
}

/**
 * Chooses the narrowest index that contains the answer. A query for the caller's own work scans the caller's index if it
 * is the smaller one: others may use the same `context_id`. A cursor reveals where the scan of its page ended, and must not
 * reveal work of others. An index with work of others is therefore scanned to its end or, if it is too long, replaced
 * by the caller's own indexes.
 */
export async function toPlan(
  broker: Scans,
  principal: Principal,
  query: Omit<ListQuery, "limit">,
  prefix: IndexPrefix = "",
): Promise<Plan> {
  const narrow = narrowest(query);
  const { target } = query;
  const shards = target === undefined ? broker.shards.all : broker.shards.withDelegationsOf(target);
  const sizeOf = async (index: string): Promise<number> => {
    const sizes = await Promise.all(shards.map((shard) => broker.bulk.zcard(shard.list(prefix + index))));
    return sizes.reduce((sum, one) => sum + one, 0);
  };
  const since = query.since === undefined ? 0 : Date.parse(query.since);
  const planOf = (indexes: readonly string[], oldest: number, most: number = SCAN): Plan => ({
    indexes: indexes.map((index) => prefix + index),
    shards,
    oldest,
    most,
  });
  const mine = `delegator:${principal.text}`;
  const isOwn = query.delegator === principal.text && narrow !== undefined && narrow !== mine;
  if (seesAll(principal)) {
    const [size, mineSize] = isOwn ? await Promise.all([sizeOf(narrow), sizeOf(mine)]) : [0, 0];
    return planOf([mineSize < size ? mine : (narrow ?? "all")], since);
  }
  const own = [mine];
  if (principal.kind === "agent" && !isOwn) own.push(`target:${principal.name}`);
  const madeAt = principal.kind === "agent" ? await broker.agents.since(principal.name) : 0;
  const oldest = Math.max(since, madeAt);
  if (narrow !== undefined) {
    if (own.includes(narrow)) return planOf([narrow], oldest);
    const [size, mineSize] = await Promise.all([sizeOf(narrow), isOwn ? sizeOf(mine) : 0]);
    if (isOwn && mineSize < size) return planOf([mine], oldest);
    if (size <= SCAN) return planOf([narrow], oldest, Number.POSITIVE_INFINITY);
  }
  return planOf(own, oldest);
}

export const isBehind = (position: Position, { at, id }: Position): boolean =>
  at < position.at || (at === position.at && id < position.id);
const newestFirst = (a: Position, b: Position): number =>
  b.at - a.at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);

/** The next positions after `after`, newest first, merged from all indexes and shards without duplicates. */
export async function scan(broker: Pick<Broker, "bulk">, plan: Plan, after: Position): Promise<Position[]> {
  const max = after.at === Number.POSITIVE_INFINITY ? "+inf" : after.at;
  const found = new Map<string, Position>();
  const lists = plan.shards.flatMap((shard) => plan.indexes.map((index) => shard.list(index)));
  await Promise.all(
    lists.map(async (key) => {
      // Records of one instant share a score, so they are read again until the cursor is past them.
      for (let offset = 0, fresh = 0; fresh < BATCH; offset += BATCH) {
        const flat = await broker.bulk.zrevrangebyscore(
          key,
          max,
          plan.oldest,
          "WITHSCORES",
          "LIMIT",
          offset,
          BATCH,
        );
        for (let i = 0; i + 1 < flat.length; i += 2) {
          const position = { id: flat[i] ?? "", at: Number(flat[i + 1]) };
          if (!isBehind(after, position)) continue;
          found.set(position.id, position);
          fresh += 1;
        }
        if (flat.length < 2 * BATCH) return;
      }
    }),
  );
  return [...found.values()].sort(newestFirst).slice(0, BATCH);
}

/** A record, or its summary. */
type Listed = Readable<
  "state" | "target" | "delegator" | "context_id" | "parent_id" | "created_at" | "finished_at" | "error"
>;

export async function matches(
  broker: Pick<Broker, "agents">,
  principal: Principal,
  query: ListQuery,
  record: Listed,
): Promise<boolean> {
  if (query.target !== undefined && query.target !== record.get("target")) return false;
  if (query.delegator !== undefined && query.delegator !== record.get("delegator")) return false;
  if (query.context_id !== undefined && query.context_id !== record.get("context_id")) return false;
  if (query.parent_id !== undefined && query.parent_id !== record.get("parent_id")) return false;
  if (query.state !== undefined && !query.state.includes(record.get("state"))) return false;
  if (query.error_code !== undefined && query.error_code !== errorCode(record.get("error"))) return false;
  if (query.ended_since !== undefined && !isAtLeast(record.get("finished_at"), query.ended_since))
    return false;
  return canSee(broker, principal, record);
}

const isAtLeast = (at: number | null, instant: string): boolean => at !== null && at >= Date.parse(instant);

function errorCode(error: string | null): string | null {
  return error === null ? null : delegationErrorSchema.parse(JSON.parse(error)).code;
}

export function list(broker: Lists, principal: Principal, query: ListQuery): Promise<ListPage> {
  return broker.readLimiter.run(principal, () => page(broker, principal, query));
}

export interface ListPage {
  readonly records: StoredDelegation[];
  readonly next_cursor: string | null;
  /** The creation time, ms, of the oldest record that was read; null when all were read. */
  readonly scanned_to: number | null;
}

async function page(broker: Scans, principal: Principal, query: ListQuery): Promise<ListPage> {
  const found = cut(await find(broker, principal, query));
  const read = await readMany(
    broker,
    found.hits.map(({ summary }) => summary),
  );
  // Checked again: a record may have changed since it was found.
  const still = await Promise.all(read.map((record) => matches(broker, principal, query, record)));
  const { next } = found;
  return {
    records: read.filter((_, at) => still[at]),
    next_cursor: cursorOf(next),
    scanned_to: next?.at ?? null,
  };
}

const cursorOf = (next: Position | null): string | null => next && `${next.at}.${next.id}`;

/** A page of summaries: it has no limit in bytes, and the caller takes a turn for it. */
export async function findSummaries(broker: Scans, principal: Principal, query: ListQuery) {
  const { hits, next } = await find(broker, principal, query);
  return { summaries: hits.map(({ summary }) => summary), next_cursor: cursorOf(next) };
}

interface Hit {
  readonly position: Position;
  readonly summary: RecordSummary;
}

interface Found {
  readonly hits: readonly Hit[];
  readonly next: Position | null;
}

/** The matches of a page, and where the next one begins. */
async function find(broker: Scans, principal: Principal, query: ListQuery): Promise<Found> {
  const plan = await toPlan(broker, principal, query);
  const hits: Hit[] = [];
  const part = query.q?.toLowerCase();
  let position = startOf(query);
  for (let scanned = 0; scanned < plan.most; ) {
    const positions = await scan(broker, plan, position);
    const ids = positions.map(({ id }) => id);
    const summaries = await readSummaries(broker.bulk, broker.shards, ids, {
      errors: query.error_code !== undefined,
      previews: part !== undefined,
    });
    for (const [at, summary] of summaries.entries()) {
      position = positions[at] ?? position;
      scanned += 1;
      const isHit =
        summary !== null &&
        (part === undefined || summary.task_preview.toLowerCase().includes(part)) &&
        (await matches(broker, principal, query, summary));
      if (isHit) hits.push({ position, summary });
      if (hits.length === query.limit) return { hits, next: position };
    }
    if (positions.length < BATCH) return { hits, next: null };
  }
  return { hits, next: position };
}

/** Keeps as many as fit into one response. */
function cut({ hits, next }: Found): Found {
  const count = countFitting(hits.map(({ summary }) => summary));
  if (count === hits.length) return { hits, next };
  return { hits: hits.slice(0, count), next: hits[count - 1]?.position ?? next };
}
