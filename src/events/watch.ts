/**
 * Replays stored events, then continues with live ones, without a gap or a repeat: it subscribes first, reads the
 * streams to their end, and skips live events that the replay already returned, by their id. Limit: a reader that falls
 * further behind than the buffer is cut, and resumes by its cursor.
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
  | { readonly entry: Entry; readonly positions: Positions; readonly isHeld?: boolean }
  | { readonly reset: true; readonly positions: Positions }
  /** All stored events were returned; the next ones are live. */
  | { readonly caught_up: true; readonly positions: Positions };

/** The most events that are buffered for a slow reader. */
const MAX_BUFFERED = LIMITS.buffered_events.value;
const MAX_BUFFERED_CHARS = 4 * 1024 * 1024;

export interface Watch {
  readonly redis: Redis;
  readonly shards: Shards;
  readonly feed: Feed;
  readonly source: Source;
  readonly bodies: Bodies;
  /** Whether to load the bodies of an event; default: yes, of all. */
  readonly wants?: (entry: Entry) => boolean;
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
  return source.kind === "principal" ? keys.feed(source.principal) : keys.events;
}

/** The newest position of every shard; a subscriber that starts there gets only new events. */
export async function currentPositions(redis: Redis, shards: Shards): Promise<Positions> {
  return Promise.all(shards.all.map(async (keys) => (await edges(redis, keys.events)).last));
}

class EventBuffer implements AbortListener {
  readonly #fanOut: FanOut;
  readonly #load: (entry: Entry) => Entry | Promise<Entry>;
  readonly #entries: { readonly size: number; readonly loaded: Entry | Promise<Entry> }[] = [];
  #chars = 0;
  #wake: (() => void) | null = null;
  readonly #reader = { wake: () => this.#wake?.() };
  ended = false;

  constructor(fanOut: FanOut, load: (entry: Entry) => Entry | Promise<Entry>) {
    this.#fanOut = fanOut;
    this.#load = load;
  }

  push(entry: Entry): void {
    const size = sizeOf(entry);
    this.#chars += size;
    if (this.#entries.length >= MAX_BUFFERED || this.#chars > MAX_BUFFERED_CHARS) this.ended = true;
    // Loaded now, because the bodies may be replaced soon.
    if (!this.ended) this.#entries.push({ size, loaded: this.#load(entry) });
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

  async next(): Promise<Entry | undefined> {
    while (this.#entries.length === 0 && !this.ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const first = this.#entries.shift();
    if (!first) return undefined;
    this.#chars -= first.size;
    return first.loaded;
  }
}

/** The most that a replay holds at once: a page, and the bodies of a batch. (An entry may be larger.) */
const HELD_BYTES = 2 * READ_BYTES;

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
  const { redis, shards, feed, source, bodies, keptMs, wants = () => true, signal, pace = UNPACED } = options;
  const indexes = shardsOf(shards, source);
  const positions = [...options.after];
  const load = (entry: Entry) => (wants(entry) ? bodies.load(entry) : entry);
  const buffer = new EventBuffer(feed.fanOut, load);
  const unsubscribe = feed.subscribe(source, {
    push: (entry) => buffer.push(entry),
    gap: () => buffer.end(),
  });
  signal.addEventListener("abort", buffer);
  const advance = (entry: Entry): Watched & { readonly entry: Entry } => {
    positions[indexes.indexOf(entry.shard)] = entry.id;
    return { entry, positions: [...positions] };
  };
  let hold: Hold | undefined;
  try {
    const streams = indexes.map((shard) => streamOf(shards, shard, source));
    // The events of a delegation are never trimmed and have no age limit: they are shown as long as its record exists.
    const expires = source.kind === "principal";
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
        const hasBodies = entries.some((entry) => entry.refs !== "" && wants(entry));
        hold.set(textBytes(page) + (hasBodies ? READ_BYTES : 0));
        for (const batch of inBatches(entries)) {
          const loadAll = async () => Promise.all(batch.map(load));
          for (const entry of hasBodies ? await inTurn(pace, loadAll) : await loadAll()) {
            yield { ...advance(entry), isHeld: true };
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
      const entry = await buffer.next();
      if (!entry) return;
      if (compareIds(entry.id, positions[indexes.indexOf(entry.shard)] ?? "0-0") > 0) yield advance(entry);
    }
  } finally {
    hold?.release();
    unsubscribe();
    signal.removeEventListener("abort", buffer);
  }
}
