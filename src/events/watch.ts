/**
 * One reader's events, stored ones first, then live ones, without a gap or a repeat: it subscribes first, reads the streams
 * to their end, and skips live events that the replay already returned, by their id. This generator is all there is between
 * the feed and doors/http/event-stream.ts, which writes the frames. What happens to an event on the way:
 *
 *     feed.push ── LiveBuffer ──┐
 *                               ├── watch() ── for await ── EventStream ── "id: 1718000000000-0\nevent: …\ndata: {…}\n\n"
 *     readPage ── inBatches ────┘
 *
 * - Dropped: an event that `shows` refuses; it only moves the positions (`skipped`).
 * - Bounded: live events by LIVE_EVENTS and LIVE_CHARS, stored ones by HELD_BYTES and by the reader's pace.
 * - Ended: by `signal`; after the event that `isLast` names; when the feed has a gap; when the buffer is full, after what it
 *   has; when a stream was trimmed faster than it was read. Unless it left or has its last event, the
 *   reader resumes by its cursor.
 */
import type { Redis } from "../redis/connect.ts";
import type { Shards } from "../redis/shards.ts";
import { LIMITS } from "../schema/limits.ts";
import type { AbortListener, StopSignal } from "../util/stop-signal.ts";
import type { Bodies } from "./bodies.ts";
import type { Positions } from "./cursor.ts";
import { compareIds, type Entry, sizeOf, toEntry } from "./entry.ts";
import type { FanOut } from "./fan-out.ts";
import type { Feed, Source } from "./feed.ts";
import { type Hold, type ReplayPace, UNPACED } from "./replay-pace.ts";
import { type Edges, edges, edgesAndPage, type Page, READ_BYTES, readPage } from "./stored.ts";

export type Watched =
  /** `isHeld`: the reader's pace counts its bytes until the next event is asked for. */
  | { readonly entry: Entry; readonly positions: Positions; readonly isHeld: boolean }
  /** An event that the reader does not see; it only moves the positions. */
  | { readonly skipped: true; readonly positions: Positions }
  /** Events after the reader's position are gone; the oldest that is kept comes next. */
  | { readonly reset: true; readonly positions: Positions }
  /** All stored events were returned; the next ones are live. */
  | { readonly caught_up: true; readonly positions: Positions };

/** The most live events that wait for a slow reader, and their characters. A reader further behind is cut. */
const LIVE_EVENTS = LIMITS.buffered_events.value;
const LIVE_CHARS = 4 * 1024 * 1024;
/** The most that a replay holds at once: a page, and the bodies of a batch. (An entry may be larger.) */
const HELD_BYTES = 2 * READ_BYTES;

export interface Watch {
  readonly redis: Redis;
  readonly shards: Shards;
  readonly feed: Feed;
  readonly source: Source;
  readonly bodies: Bodies;
  /** Whether the reader sees an event; default: all. */
  readonly shows?: (entry: Entry) => boolean;
  /** Whether the stream ends after an event; default: never. */
  readonly isLast?: (entry: Entry) => boolean;
  /** False leaves the references to bodies unresolved. */
  readonly loadsBodies?: boolean;
  /** How long an event is shown, ms; also how long a principal's feed exists after its last event. */
  readonly keptMs: number;
  /** The positions to start after, one for each shard of {@link shardsOf}. */
  readonly after: Positions;
  readonly signal: StopSignal;
  /** Default: stored events are read at once. */
  readonly pace?: ReplayPace;
}

/** The shards that a source is read from. */
export function shardsOf(shards: Shards, source: Source): number[] {
  if (source.kind !== "delegation") return shards.all.map((_, shard) => shard);
  const shard = shards.indexOfId(source.id);
  return shard === undefined ? [] : [shard];
}

function streamOf(shards: Shards, shard: number, source: Source): string {
  const keys = shards.at(shard);
  if (source.kind === "delegation") return keys.delegationEvents(source.id);
  return source.kind === "all" ? keys.events : keys.feed(source.principal);
}

/** The newest position of every shard; a subscriber that starts there gets only new events. */
export async function currentPositions(redis: Redis, shards: Shards): Promise<Positions> {
  return Promise.all(shards.all.map(async (keys) => (await edges(redis, keys.events)).last));
}

interface LiveEvent {
  readonly size: number;
  readonly isShown: boolean;
  readonly loaded: Entry | Promise<Entry>;
}

/** Live events that the reader has not asked for yet. */
class LiveBuffer implements AbortListener {
  readonly #fanOut: FanOut;
  readonly #load: (entry: Entry, isShown: boolean) => Entry | Promise<Entry>;
  readonly #shows: (entry: Entry) => boolean;
  readonly #events: LiveEvent[] = [];
  #chars = 0;
  #wake: (() => void) | null = null;
  readonly #reader = { wake: () => this.#wake?.() };
  /** Nothing more is added. */
  ended = false;

  constructor(
    fanOut: FanOut,
    load: (entry: Entry, isShown: boolean) => Entry | Promise<Entry>,
    shows: (entry: Entry) => boolean,
  ) {
    this.#fanOut = fanOut;
    this.#load = load;
    this.#shows = shows;
  }

  push(entry: Entry): void {
    const size = sizeOf(entry);
    this.#chars += size;
    if (this.#events.length >= LIVE_EVENTS || this.#chars > LIVE_CHARS) this.ended = true;
    if (!this.ended) {
      const isShown = this.#shows(entry);
      // Loaded now, because the bodies may be replaced soon.
      this.#events.push({ size, isShown, loaded: this.#load(entry, isShown) });
    }
    this.#fanOut.wake(this.#reader, size);
  }

  /** Called when the reader leaves. */
  handleEvent(): void {
    this.end();
  }

  end(): void {
    this.ended = true;
    this.#wake?.();
  }

  shift(): LiveEvent | undefined {
    const first = this.#events.shift();
    if (first) this.#chars -= first.size;
    return first;
  }

  /** Resolves on the next event, or at the end. */
  more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

const textBytes = ({ entries }: Page): number =>
  entries.reduce((sum, [, flat]) => sum + flat.reduce((chars, text) => chars + text.length, 0), 0);

async function inTurn<T>(pace: ReplayPace, read: () => Promise<T>): Promise<T> {
  const end = await pace.turn();
  try {
    return await read();
  } finally {
    end();
  }
}

/** Batches of at most READ_BYTES, bodies included; a larger entry is a batch of its own. */
function* inBatches(entries: readonly Entry[]): Generator<Entry[]> {
  let batch: Entry[] = [];
  let size = 0;
  for (const entry of entries) {
    size += sizeOf(entry);
    if (size > READ_BYTES && batch.length > 0) {
      yield batch;
      batch = [];
      size = sizeOf(entry);
    }
    batch.push(entry);
  }
  yield batch;
}

export async function* watch(options: Watch): AsyncGenerator<Watched, void, undefined> {
  const { redis, shards, feed, source, bodies, keptMs, signal } = options;
  const { shows = () => true, isLast = () => false, loadsBodies = true, pace = UNPACED } = options;
  const indexes = shardsOf(shards, source);
  const positions = [...options.after];
  const load = (entry: Entry, isShown: boolean) => (loadsBodies && isShown ? bodies.load(entry) : entry);
  const live = new LiveBuffer(feed.fanOut, load, shows);
  const unsubscribe = feed.subscribe(source, {
    push: (entry) => live.push(entry),
    gap: () => live.end(),
  });
  signal.addEventListener("abort", live);
  /** Moves the positions to the event. */
  const item = (entry: Entry, isShown: boolean, isHeld: boolean): Watched => {
    positions[indexes.indexOf(entry.shard)] = entry.id;
    const reached = [...positions];
    return isShown ? { entry, positions: reached, isHeld } : { skipped: true, positions: reached };
  };
  let hold: Hold | undefined;
  try {
    const streams = indexes.map((shard) => streamOf(shards, shard, source));
    // The events of a delegation are never trimmed and have no age limit: they are shown as long as its record exists.
    const expires = source.kind !== "all";
    // The first page of the first stream comes with its edges, which saves a call when a reader resumes.
    const pages: Page[] = [];
    const begin = async (stream: string, at: number): Promise<Edges> => {
      const position = positions[at] ?? "0-0";
      if (at > 0) return edges(redis, stream, position, { keptMs, expires });
      const opened = await edgesAndPage(redis, stream, position, { keptMs, expires });
      if (opened.page) pages.push(opened.page);
      return opened.edges;
    };
    hold = await pace.hold(HELD_BYTES);
    const found =
      source.kind === "delegation" || signal.aborted
        ? []
        : await inTurn(pace, () => Promise.all(streams.map(begin)));
    hold.set(pages.reduce((sum, page) => sum + textBytes(page), 0));
    if (found.some(({ missed }) => missed)) {
      // Continues with the oldest event that is kept.
      for (const [at, { missed }] of found.entries()) if (missed) positions[at] = "0-0";
      yield { reset: true, positions: [...positions] };
    }
    for (const [at, stream] of streams.entries()) {
      for (let more = true; more && !signal.aborted; ) {
        hold ??= await pace.hold(HELD_BYTES);
        const position = positions[at] ?? "0-0";
        const page =
          pages.pop() ??
          (await inTurn(pace, () => readPage(redis, stream, position, found[at]?.oldest ?? "0-0")));
        // The stream was trimmed faster than it was read. The reader gets a reset when it resumes by its cursor.
        if (page.kind === "gap") return;
        const entries = page.entries.map(([id, flat]) => toEntry(indexes[at] ?? 0, id, flat));
        const hasBodies = loadsBodies && entries.some((entry) => entry.refs !== "" && shows(entry));
        hold.set(textBytes(page) + (hasBodies ? READ_BYTES : 0));
        for (const batch of inBatches(entries)) {
          const loadAll = async () => Promise.all(batch.map((entry) => load(entry, shows(entry))));
          for (const entry of hasBodies ? await inTurn(pace, loadAll) : batch) {
            const isShown = shows(entry);
            yield item(entry, isShown, true);
            if (isShown && isLast(entry)) return;
          }
        }
        hold.release();
        hold = undefined;
        positions[at] = page.position;
        more = page.kind === "more";
      }
    }
    hold?.release();
    hold = undefined;
    yield { caught_up: true, positions: [...positions] };
    while (!signal.aborted) {
      const next = live.shift();
      if (!next) {
        if (live.ended) return;
        await live.more();
        continue;
      }
      const entry = await next.loaded;
      // The replay had it.
      if (compareIds(entry.id, positions[indexes.indexOf(entry.shard)] ?? "0-0") <= 0) continue;
      yield item(entry, next.isShown, false);
      if (next.isShown && isLast(entry)) return;
    }
  } finally {
    hold?.release();
    unsubscribe();
    signal.removeEventListener("abort", live);
  }
}
