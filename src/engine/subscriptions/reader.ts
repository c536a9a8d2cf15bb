/**
 * Reads the events of a shard from where the last reader stopped, and puts notifications into lanes. Several gateways may
 * read at once: `store.notice` moves the position and adds the notifications in one step, so each is added once.
 * Limit: the shard's stream is short. If it was trimmed past the position, because the broker was away or there was no
 * subscription, what is missing is read from the feeds of the shard's agents, which are kept as long as delegations.
 */
import { compareIds, type Entry, toEntry } from "../../events/entry.ts";
import { edges, readPage } from "../../events/stored.ts";
import type { Broker } from "../broker.ts";
import type { Audience } from "./audience.ts";
import { happeningsOf, isOfInterest } from "./happenings.ts";
import type { Position, SubscriptionStore, Told } from "./store.ts";

type Needs = Pick<Broker, "bulk" | "redis" | "shards">;

/** The most notifications that one step adds. */
const MOST_TOLD = 2_000;
/** Of a stream without an event; `0-0` would ask for what is left of it, and not whether all of it is. */
const BEFORE_ALL = "0-1";
const AGENTS_AT_ONCE = 100;
/** A question is announced to expire when a tenth of its time is left, but within these bounds, ms. */
const SOONEST_MS = 30_000;
const LATEST_MS = 3_600_000;

interface Batch {
  readonly told: Told[];
  readonly questions: { readonly name: string; readonly at: number }[];
}

/** Reads all events of the shard. False: another gateway reads them, or the audience is out of date. */
export async function readShard(
  broker: Needs,
  store: SubscriptionStore,
  audience: Audience,
  shard: number,
): Promise<boolean> {
  const stream = broker.shards.at(shard).events;
  for (let from = await store.position(shard); ; ) {
    if (from.version !== audience.version) return false;
    // A shard that is new since the first subscription has been created.
    if (from.at === "") return store.notice(shard, from, await newestIn(broker, shard), [], []);
    const page = await readPage(broker.bulk, stream, from.at, "0-0");
    if (page.kind === "gap") {
      const to = await readFeeds(broker, store, audience, shard, from);
      if (to === null) return false;
      from = to;
      continue;
    }
    const batch: Batch = { told: [], questions: [] };
    let at = page.position;
    let isCut = false;
    for (const [id, flat] of page.entries) {
      collect(audience, toEntry(shard, id, flat), batch);
      if (batch.told.length < MOST_TOLD) continue;
      at = id;
      isCut = true;
      break;
    }
    if (at === from.at) return stepBack(broker, store, shard, from);
    if (!(await store.notice(shard, from, at, batch.told, batch.questions))) return false;
    from = { ...from, at };
    if (page.kind === "end" && !isCut) return true;
  }
}

/** After a fail-over or a restore, Redis may not have the event that was read last: then the reader begins at its end. */
async function stepBack(
  broker: Needs,
  store: SubscriptionStore,
  shard: number,
  from: Position,
): Promise<boolean> {
  const { last } = await edges(broker.redis, broker.shards.at(shard).events);
  return from.at === BEFORE_ALL || compareIds(from.at, last) <= 0 || store.notice(shard, from, last, [], []);
}

/** Where a reader begins that is to read only what comes. */
async function newestIn({ redis, shards }: Pick<Needs, "redis" | "shards">, shard: number): Promise<string> {
  const { last } = await edges(redis, shards.at(shard).events);
  return last === "0-0" ? BEFORE_ALL : last;
}

export const newestOf = (broker: Pick<Needs, "redis" | "shards">): Promise<string[]> =>
  Promise.all(broker.shards.all.map((_, shard) => newestIn(broker, shard)));

function collect(audience: Audience, entry: Entry, { told, questions }: Batch): void {
  if (!isOfInterest(entry)) return;
  const { happenings, question } = happeningsOf(entry);
  for (const happening of happenings) told.push(...audience.told(happening));
  if (!question || !audience.wants("question_expiring")) return;
  const life = question.expires_at - entry.at;
  const lead = Math.min(Math.max(life / 10, SOONEST_MS), LATEST_MS, life / 2);
  questions.push({
    name: `${entry.delegation_id} ${question.id}`,
    at: Math.round(question.expires_at - lead),
  });
}

/** Up to the stream's present end. Null: another gateway was faster. */
async function readFeeds(
  broker: Needs,
  store: SubscriptionStore,
  audience: Audience,
  shard: number,
  from: Position,
): Promise<Position | null> {
  const keys = broker.shards.at(shard);
  const { last } = await edges(broker.redis, keys.events);
  const batch: Batch = { told: [], questions: [] };
  let cursor = "0";
  const seen = new Set<string>();
  do {
    const [next, names] = await broker.bulk.sscan(keys.agents, cursor, "COUNT", AGENTS_AT_ONCE);
    for (const name of names) {
      if (seen.has(name)) continue;
      seen.add(name);
      for await (const entry of feedOf(broker, shard, `agent:${name}`, from.at, last))
        collect(audience, entry, batch);
    }
    cursor = next;
  } while (cursor !== "0");
  batch.told.sort((a, b) => a.notice.at - b.notice.at);
  const moved = await store.notice(shard, from, last, batch.told, batch.questions);
  return moved ? { ...from, at: last } : null;
}

async function* feedOf(
  broker: Needs,
  shard: number,
  principal: string,
  after: string,
  last: string,
): AsyncGenerator<Entry> {
  const stream = broker.shards.at(shard).feed(principal);
  for (let position = after; ; ) {
    // From the start of what is left: what was trimmed is gone with its delegations.
    const page = await readPage(broker.bulk, stream, "0-0", position);
    for (const [id, flat] of page.entries) {
      if (compareIds(id, last) > 0) return;
      if (id !== position) yield toEntry(shard, id, flat);
    }
    if (page.kind !== "more" || compareIds(page.position, position) <= 0) return;
    position = page.position;
  }
}
