/**
 * Subscriptions to events: which stream to read, which events the principal may see, and pages for callers that poll.
 * Limit: filters narrow what a principal may see; they never widen it.
 */
import { withoutBodies } from "../../events/bodies.ts";
import { isStart, type Positions } from "../../events/cursor.ts";
import { compareIds, type Entry } from "../../events/entry.ts";
import type { Source } from "../../events/feed.ts";
import type { ReplayPace } from "../../events/replay-pace.ts";
import { currentPositions, type Watched, watch } from "../../events/watch.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { TERMINAL_EVENT_TYPES } from "../../schema/event.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { isParty, type Principal, seesAll } from "../access/access.ts";
import type { Broker, BulkReads, Reads, Records } from "../broker.ts";
import { read } from "../delegations/read.ts";
import { PAGE_BYTES } from "../delegations/read-many.ts";

/** To follow events live and stored, with the bodies that they refer to. */
export type Streams = Pick<Broker, "bodies" | "feed" | "retentionMs">;

export interface EventFilter {
  readonly delegator?: string | undefined;
  readonly target?: string | undefined;
  readonly delegation_id?: string | undefined;
  readonly context_id?: string | undefined;
  readonly types?: readonly string[] | undefined;
  readonly matches?: ((entry: Entry) => boolean) | undefined;
}

export interface Subscription {
  readonly source: Source;
  readonly filter: EventFilter;
}

/** Chooses the narrowest stream that the principal may read and that has all requested events. */
export async function subscribe(
  broker: Reads,
  principal: Principal,
  filter: EventFilter,
): Promise<Subscription> {
  const of = (name: string, more: EventFilter = {}): Subscription => ({
    source: { kind: "principal", principal: name },
    filter: { ...filter, ...more },
  });
  const record =
    filter.delegation_id === undefined ? null : await read(broker, principal, filter.delegation_id);
  if (record) {
    const [delegator, target] = [record.get("delegator"), record.get("target")];
    if (!isParty(principal, { delegator, target })) return of(delegator);
  }
  if (!seesAll(principal)) {
    const since = principal.kind === "agent" ? await broker.agents.since(principal.name) : 0;
    // The feed also has what was delegated further below its own work; `treeEvents` shows that.
    const matches = (entry: Entry) => entry.created_at >= since && isParty(principal, entry);
    return of(principal.text, { matches });
  }
  if (filter.delegator !== undefined) return of(filter.delegator);
  if (filter.target !== undefined) return of(`agent:${filter.target}`);
  return { source: { kind: "all" }, filter };
}

function wants(filter: EventFilter, entry: Entry): boolean {
  return (
    (filter.delegator === undefined || filter.delegator === entry.delegator) &&
    (filter.target === undefined || filter.target === entry.target) &&
    (filter.delegation_id === undefined || filter.delegation_id === entry.delegation_id) &&
    (filter.context_id === undefined || filter.context_id === entry.context_id) &&
    (filter.types === undefined || filter.types.includes(entry.type)) &&
    (filter.matches === undefined || filter.matches(entry))
  );
}

/** The newest position in each shard; a subscriber without a cursor starts there. */
export const now = (broker: Records): Promise<Positions> => currentPositions(broker.redis, broker.shards);

/** The events of a subscription after the positions. */
export function subscribedEvents(
  broker: Streams & BulkReads,
  { source, filter }: Subscription,
  after: Positions,
  signal: StopSignal,
  pace?: ReplayPace,
): AsyncGenerator<Watched, void, undefined> {
  const shows = (entry: Entry) => wants(filter, entry);
  return watch({
    ...sourcesOf(broker, broker.bulk),
    source,
    after,
    signal,
    shows,
    ...(pace && { pace }),
  });
}

/** What every watch reads from. */
export const sourcesOf = (
  { shards, feed, bodies, retentionMs: keptMs }: Streams & Pick<Broker, "shards">,
  redis: Broker["redis"],
) => ({
  redis,
  shards,
  feed,
  bodies,
  keptMs,
});

export interface CollectOptions {
  readonly wait_seconds: number;
  readonly limit: number;
  readonly signal: AbortSignal;
  /** Waits for the reader's turn to read stored events; resolves to a function that ends the turn. */
  readonly turn: () => Promise<() => void>;
}

/**
 * Collects a page for a caller that polls: the stored events after the cursor, up to `limit` and {@link PAGE_BYTES}. If
 * there are none, it waits up to `wait_seconds` for the first live event. `take` converts an event to an item of the
 * page, or drops it; `sizeOf` returns the bytes of an item.
 */
export async function collectPage<T>(
  events: (signal: StopSignal) => AsyncIterable<Watched>,
  options: CollectOptions,
  take: (event: Watched) => T | undefined,
  sizeOf: (item: T) => number = () => 0,
): Promise<{ items: T[]; positions: Positions | undefined }> {
  const items: T[] = [];
  let size = 0;
  let positions: Positions | undefined;
  const enough = new AbortController();
  const stop = () => enough.abort();
  let timer: NodeJS.Timeout | undefined;
  options.signal.addEventListener("abort", stop, { once: true });
  if (options.signal.aborted) stop();
  let endTurn = () => {};
  try {
    endTurn = await options.turn();
    for await (const event of events(enough.signal)) {
      const item = "caught_up" in event ? undefined : take(event);
      if (item !== undefined) {
        size += sizeOf(item);
        // The first item is always included; otherwise no reader could get past it.
        if (size > PAGE_BYTES && items.length > 0) break;
        items.push(item);
      }
      positions = event.positions;
      if ("caught_up" in event) {
        endTurn();
        if (items.length > 0 || options.wait_seconds === 0) break;
        timer = setTimeout(stop, options.wait_seconds * 1000);
      }
      // A live event is returned at once; later ones are for the next page.
      if (items.length >= options.limit || (timer && items.length > 0)) break;
    }
  } finally {
    endTurn();
    clearTimeout(timer);
    options.signal.removeEventListener("abort", stop);
  }
  return { items, positions };
}

/** The events of a delegation after a position; ends after the final one. */
export function delegationEvents(
  broker: Streams & Records,
  { id }: StoredDelegation,
  after: string,
  signal: StopSignal,
  pace?: ReplayPace,
): AsyncGenerator<Watched, void, undefined> {
  const source: Source = { kind: "delegation", id };
  const isLast = ({ type }: Entry) => TERMINAL_EVENT_TYPES.includes(type);
  return watch({
    ...sourcesOf(broker, broker.redis),
    source,
    after: [after],
    signal,
    isLast,
    ...(pace && { pace }),
  });
}

/** The events of a delegation that are stored by now, without the bodies of artifacts. */
export async function* storedEvents(
  broker: Streams & Records,
  { id }: StoredDelegation,
  signal: StopSignal,
): AsyncGenerator<Entry, void, undefined> {
  const source: Source = { kind: "delegation", id };
  for await (const event of watch({
    ...sourcesOf(broker, broker.redis),
    source,
    after: ["0-0"],
    signal,
    loadsBodies: false,
  })) {
    if ("caught_up" in event) return;
    if ("entry" in event) yield withoutBodies(event.entry);
  }
}

/** True when no event can follow this cursor. */
export const isPastEnd = (record: StoredDelegation, cursor: string): boolean =>
  record.finished && !isStart(cursor) && compareIds(cursor, record.get("event_id")) >= 0;
