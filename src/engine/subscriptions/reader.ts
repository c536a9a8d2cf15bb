/**
 * Reads the events of a shard from where the last reader stopped, and puts notifications into lanes. Several gateways may
 * read at once: `store.addOfEvents` moves the position and adds the notifications in one step, so each is added once. The
 * audience is read after the events, so it has everybody who subscribed before one of them.
 * Limit: the shard's stream is short. If it was trimmed past the position, because the broker was away or there was no
 * subscription, what is missing is read from the feeds of the shard's agents, which are kept as long as delegations. Events of
 * agents that are deleted by then are lost.
 */

import { compareIds, type Entry, toEntry } from "../../events/entry.ts";
import { edges, readPage } from "../../events/stored.ts";
import { isVotedOn } from "../../schema/counted-votes.ts";
import { interruptSchema } from "../../schema/delegation.ts";
import type { Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { countsAt, type VotedOn, votesNow } from "./approvers.ts";
import type { Audience } from "./audience.ts";
import { happeningsOf, isOfInterest } from "./happenings.ts";
import type { LaneNotice, SubscriptionStore, Timely } from "./store.ts";
import { timelyOf } from "./timely.ts";

type Needs = Pick<Broker, "agents" | "bulk" | "redis" | "shards">;

/** About how many notifications one step adds. */
const MOST_NOTICES = 2_000;
/** The position in a stream without events. With `0-0`, a read does not notice that the stream was trimmed. */
const BEFORE_ALL = "0-1";
const AGENTS_AT_ONCE = 100;

interface Collected {
  readonly notices: readonly LaneNotice[];
  /** What becomes due later, because of the questions. */
  readonly questions: readonly Timely[];
}

/** One read of a shard's events. */
interface Reading {
  readonly broker: Needs;
  readonly store: SubscriptionStore;
  /** The present audience. */
  readonly current: () => Promise<Audience>;
  readonly shard: number;
}

/** Reads the events of the shard. False: some are left, because another gateway reads them. */
export async function readShard(
  broker: Needs,
  store: SubscriptionStore,
  current: () => Promise<Audience>,
  shard: number,
): Promise<boolean> {
  const reading = { broker, store, current, shard };
  const stream = broker.shards.at(shard).events;
  for (let from = await store.position(shard); ; ) {
    // A shard that is new since the first subscription was created.
    if (from === "") return store.addOfEvents(shard, from, await newestIn(broker, shard), [], []);
    const page = await readPage(broker.bulk, stream, from, "0-0");
    if (page.kind === "gap") {
      const to = await readFeeds(reading, from);
      if (to === null) return false;
      from = to;
      continue;
    }
    if (page.position === from) return stepBack(reading, from);
    const entries = page.entries.map(([id, flat]) => toEntry(shard, id, flat));
    const to = await write(reading, from, entries, page.position);
    if (to === null) return false;
    if (page.kind === "end") return true;
    from = to;
  }
}

/** Adds the notifications of these events, in steps of bounded size. Returns the new position; null: another gateway was faster. */
async function write(
  reading: Reading,
  from: string,
  entries: readonly Entry[],
  end: string,
): Promise<string | null> {
  const { store, current, shard } = reading;
  const audience = await current();
  let position = from;
  let notices: LaneNotice[] = [];
  let questions: Timely[] = [];
  const step = async (to: string): Promise<boolean> => {
    const moved = to === position || (await store.addOfEvents(shard, position, to, notices, questions));
    position = to;
    notices = [];
    questions = [];
    return moved;
  };
  let last = from;
  for (const entry of entries) {
    const found = await collect(reading, audience, entry);
    notices.push(...found.notices);
    questions.push(...found.questions);
    last = entry.id;
    if (notices.length >= MOST_NOTICES && !(await step(last))) return null;
  }
  return (await step(end)) ? end : null;
}

/** After a fail-over or a restore, Redis may lack the event that was read last: then the reader goes on from the stream's end. */
async function stepBack({ broker, store, shard }: Reading, from: string): Promise<boolean> {
  const { last } = await edges(broker.redis, broker.shards.at(shard).events);
  return from === BEFORE_ALL || compareIds(from, last) <= 0 || store.addOfEvents(shard, from, last, [], []);
}

/** The position of a reader that reads only later events. */
async function newestIn({ redis, shards }: Pick<Needs, "redis" | "shards">, shard: number): Promise<string> {
  const { last } = await edges(redis, shards.at(shard).events);
  return last === "0-0" ? BEFORE_ALL : last;
}

export const newestOf = (broker: Pick<Needs, "redis" | "shards">): Promise<string[]> =>
  Promise.all(broker.shards.all.map((_, shard) => newestIn(broker, shard)));

const votedQuestionSchema = interruptSchema.pick({ id: true, kind: true, requests: true });
const NOTHING: Collected = { notices: [], questions: [] };

async function collect(reading: Reading, audience: Audience, entry: Entry): Promise<Collected> {
  if (!isOfInterest(entry)) return NOTHING;
  const { happenings, question } = happeningsOf(entry);
  // The clock of the shard may be ahead; that must not delay the notification.
  const at = Math.min(entry.at, audience.now);
  const { shard, id } = entry;
  const voted = question ? await votedOnOf(reading, entry, question.interrupt) : null;
  const only = voted && { only: (principal: Principal) => countsAt(voted, principal, entry.at) };
  const notices = happenings.flatMap((happening) =>
    audience.noticesOf({ ...happening, ...only, at, event: { shard, id } }),
  );
  if (!question) return { notices, questions: [] };
  const name = `${entry.delegation_id} ${question.id}`;
  return {
    notices,
    questions: timelyOf(name, { asked_at: entry.at, ...question }, voted?.votes ?? null),
  };
}

/** Null: everybody who may answer the question is notified of it. */
async function votedOnOf(
  { broker }: Reading,
  { target, delegator, at: raised_at }: Entry,
  interrupt: unknown,
): Promise<VotedOn | null> {
  const votes = await votesNow(broker, target);
  const question = votes && votedQuestionSchema.safeParse(interrupt).data;
  return question && isVotedOn(question) ? { votes, delegator, raised_at } : null;
}

/** Up to the stream's present end. Null: another gateway was faster. */
async function readFeeds(reading: Reading, from: string): Promise<string | null> {
  const { broker, shard } = reading;
  const keys = broker.shards.at(shard);
  const { last } = await edges(broker.redis, keys.events);
  /** By id: an agent's feed also has what it delegated. */
  const found = new Map<string, Entry>();
  let cursor = "0";
  do {
    const [next, names] = await broker.bulk.sscan(keys.agents, cursor, "COUNT", AGENTS_AT_ONCE);
    for (const name of names) {
      for await (const entry of feedOf(broker, shard, `agent:${name}`, from, last))
        if (entry.target === name && (isOfInterest(entry) || entry.status === "answered"))
          found.set(entry.id, entry);
    }
    cursor = next;
  } while (cursor !== "0");
  const entries = [...found.values()].sort((a, b) => compareIds(a.id, b.id));
  return write(reading, from, entries, last);
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
