/**
 * Replay, then live, without a gap or a repeat: the subscription is opened first, the streams are read up
 * to their end, and live events that the replay already gave are skipped by their id.
 * Limit: a reader that falls further behind than the buffer is ended and resumes by its cursor.
 */
import type { Redis } from "../redis/connect.ts";
import type { Shards } from "../redis/shards.ts";
import { LIMITS } from "../schema/limits.ts";
import { isStart, type Positions } from "./cursor.ts";
import { compareIds, type Entry, toEntry } from "./entry.ts";
import type { Feed, Source } from "./feed.ts";

export type Watched =
  | { readonly entry: Entry; readonly positions: Positions }
  | { readonly reset: true; readonly positions: Positions }
  /** All that was stored has been given; what follows is live. */
  | { readonly caught_up: true; readonly positions: Positions };

/** Events buffered for one reader that does not keep up. */
const MAX_BUFFERED = LIMITS.buffered_events.value;
const MAX_BUFFERED_CHARS = 4 * 1024 * 1024;
const PAGE = 200;

export interface Watch {
  readonly redis: Redis;
  readonly shards: Shards;
  readonly feed: Feed;
  readonly source: Source;
  /** How long the feed of a principal outlives its last event, ms. */
  readonly keptMs: number;
  /** Where to start; one position for each shard of {@link shardsOf}. */
  readonly after: Positions;
  readonly signal: AbortSignal;
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

/** The newest position of every shard: where "now" is. */
export async function currentPositions(redis: Redis, shards: Shards): Promise<Positions> {
  return Promise.all(
    shards.all.map(async (keys) => {
      const [last] = await redis.xrevrange(keys.events, "+", "-", "COUNT", 1);
      return last?.[0] ?? "0-0";
    }),
  );
}

class Buffer {
  readonly #entries: Entry[] = [];
  #chars = 0;
  #wake: (() => void) | null = null;
  ended = false;

  push(entry: Entry): void {
    this.#chars += entry.more.length;
    if (this.#entries.length >= MAX_BUFFERED || this.#chars > MAX_BUFFERED_CHARS) this.ended = true;
    if (!this.ended) this.#entries.push(entry);
    this.#wake?.();
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
    const entry = this.#entries.shift();
    this.#chars -= entry?.more.length ?? 0;
    return entry;
  }
}

/**
 * True when entries between `position` and what is kept are gone. A stream that lives for `keptMs` after its last entry
 * may have had a forerunner that went as a whole: one with an entry behind a `position` that is older than that.
 */
async function isTrimmed(
  redis: Redis,
  stream: string,
  position: string,
  keptMs: number | undefined,
): Promise<boolean> {
  if (isStart(position)) return false;
  const [first] = await redis.xrange(stream, "-", "+", "COUNT", 1);
  if (first && compareIds(first[0], position) <= 0) return false;
  if (keptMs !== undefined) {
    const beganAt = first ? msOf(first[0]) : await clockOf(redis);
    if (msOf(position) <= beganAt - keptMs) return true;
  }
  if (!first) return false;
  const info = await redis.xinfo("STREAM", stream);
  if (!Array.isArray(info)) return true;
  const added = Number(info[info.indexOf("entries-added") + 1]);
  return added > Number(info[info.indexOf("length") + 1]);
}

const msOf = (id: string): number => Number(id.split("-")[0]);

async function clockOf(redis: Redis): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

export async function* watch(options: Watch): AsyncGenerator<Watched, void, undefined> {
  const { redis, shards, feed, source, signal } = options;
  const indexes = shardsOf(shards, source);
  const keptMs = source.kind === "principal" ? options.keptMs : undefined;
  const positions = [...options.after];
  const buffer = new Buffer();
  const end = () => buffer.end();
  const unsubscribe = feed.subscribe(source, { push: (entry) => buffer.push(entry), gap: end });
  signal.addEventListener("abort", end, { once: true });
  const advance = (entry: Entry): Watched => {
    positions[indexes.indexOf(entry.shard)] = entry.id;
    return { entry, positions: [...positions] };
  };
  try {
    let wasReset = false;
    for (const [at, shard] of indexes.entries()) {
      const stream = streamOf(shards, shard, source);
      if (await isTrimmed(redis, stream, positions[at] ?? "0-0", keptMs)) {
        // From the beginning of what is kept, and never told again.
        positions[at] = "0-0";
        if (!wasReset) yield { reset: true, positions: [...positions] };
        wasReset = true;
      }
      for (let full = true; full && !signal.aborted; ) {
        const page = await redis.xrange(stream, `(${positions[at] ?? "0-0"}`, "+", "COUNT", PAGE);
        for (const [id, flat] of page) yield advance(toEntry(shard, id, flat));
        full = page.length === PAGE;
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
    signal.removeEventListener("abort", end);
  }
}
