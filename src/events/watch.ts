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
import type { Feed, Source } from "./feed.ts";
import { type Edges, edges, edgesAndPage, type Page, READ_BYTES, readPage } from "./stored.ts";

export type Watched =
  | { readonly entry: Entry; readonly positions: Positions }
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
  readonly #load: (entry: Entry) => Entry | Promise<Entry>;
  readonly #entries: { readonly size: number; readonly loaded: Entry | Promise<Entry> }[] = [];
  #chars = 0;
  #wake: (() => void) | null = null;
  ended = false;

  constructor(load: (entry: Entry) => Entry | Promise<Entry>) {
    this.#load = load;
  }

  push(entry: Entry): void {
    const size = sizeOf(entry);
    this.#chars += size;
    if (this.#entries.length >= MAX_BUFFERED || this.#chars > MAX_BUFFERED_CHARS) this.ended = true;
    // Loaded now, because the bodies may be replaced soon.
    if (!this.ended) this.#entries.push({ size, loaded: this.#load(entry) });
    this.#wake?.();
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
  const { redis, shards, feed, source, bodies, keptMs, wants = () => true, signal } = options;
  const indexes = shardsOf(shards, source);
  const positions = [...options.after];
  const load = (entry: Entry) => (wants(entry) ? bodies.load(entry) : entry);
  const buffer = new EventBuffer(load);
  const unsubscribe = feed.subscribe(source, {
    push: (entry) => buffer.push(entry),
    gap: () => buffer.end(),
  });
  signal.addEventListener("abort", buffer);
  const advance = (entry: Entry): Watched => {
    positions[indexes.indexOf(entry.shard)] = entry.id;
    return { entry, positions: [...positions] };
  };
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
    const found = source.kind === "delegation" ? [] : await Promise.all(streams.map(begin));
    if (found.some(({ missed }) => missed)) {
      // Continues with the oldest event that is kept.
      for (const [at, { missed }] of found.entries()) if (missed) positions[at] = "0-0";
      yield { reset: true, positions: [...positions] };
    }
    for (const [at, stream] of streams.entries()) {
      for (let more = true; more && !signal.aborted; ) {
        const position = positions[at] ?? "0-0";
        const page = pages.pop() ?? (await readPage(redis, stream, position, found[at]?.oldest ?? "0-0"));
        // The stream was trimmed faster than it was read. The reader gets a reset when it resumes by its cursor.
        if (page.kind === "gap") return;
        const entries = page.entries.map(([id, flat]) => toEntry(indexes[at] ?? 0, id, flat));
        for (const batch of inBatches(entries)) {
          for (const entry of await Promise.all(batch.map(load))) yield advance(entry);
        }
        positions[at] = page.position;
        more = page.kind === "more";
      }
    }
    yield { caught_up: true, positions: [...positions] };
    while (!signal.aborted) {
      const entry = await buffer.next();
      if (!entry) return;
      if (compareIds(entry.id, positions[indexes.indexOf(entry.shard)] ?? "0-0") > 0) yield advance(entry);
    }
  } finally {
    unsubscribe();
    signal.removeEventListener("abort", buffer);
  }
}
