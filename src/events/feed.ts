/**
 * The live feed: one blocking read for the whole process, or one for each shard in a Redis Cluster, fanned out to the
 * subscribers. Limit: it begins at the end of the streams; replay reads earlier events.
 *
 *     XREAD COUNT 500 BLOCK 1000 STREAMS {errand:0}:events 1718000000000-0
 *     → [["{errand:0}:events", [["1718000000250-0", ["e", "DELEGATION_SENT\ndlg_0_…\n1\n…"]]]]]   an entry: entry.ts
 *
 * The entry goes to the sinks of its delegation (`d dlg_0_…`), its delegator (`p caller:alice`), its target
 * (`p agent:scout`), its tree (`t dlg_0_…`, the root) and of everything (`all`).
 */
import type { Redis } from "../redis/connect.ts";
import type { Reader } from "../redis/connections.ts";
import { isMovingSlot, isUnavailable } from "../redis/errors.ts";
import type { Shards } from "../redis/shards.ts";
import type { Log } from "../telemetry/log.ts";
import { ownText } from "../util/text.ts";
import { doublingMs, sleep } from "../util/timing.ts";
import { compareIds, type Entry, rootOf, sizeOf, toEntry } from "./entry.ts";
import { FanOut } from "./fan-out.ts";
import { edges } from "./stored.ts";

/** The events that a subscriber receives. */
export type Source =
  | { readonly kind: "delegation"; readonly id: string }
  | { readonly kind: "principal"; readonly principal: string }
  /** A delegation and everything delegated under it. Stored ones are read from the feed of this principal. */
  | { readonly kind: "tree"; readonly root: string; readonly principal: string }
  | { readonly kind: "all" };

export interface Sink {
  readonly push: (entry: Entry) => void;
  /** Events may have been missed: close, and let the reader resume by its cursor. */
  readonly gap: () => void;
}

/** Short, so that a dead connection is noticed soon. */
const BLOCK_MS = 1_000;
/** The most entries of one read; fewer while they are large. */
const BATCH = 500;
const MIN_BATCH = 16;
/** Delegations whose newest event is remembered: at least this many, at most twice as many. */
const REMEMBERED = 5_000;
const BATCH_CHARS = 4 * 1024 * 1024;

function keyOf(source: Source): string {
  switch (source.kind) {
    case "delegation":
      return `d ${source.id}`;
    case "principal":
      return `p ${source.principal}`;
    case "tree":
      return `t ${source.root}`;
    case "all":
      return "all";
  }
}

/** A connection whose reads block, and the shards that it reads. */
class ShardReader {
  readonly redis: Reader["redis"];
  readonly streams: readonly string[];
  /** The shards of the streams, in their order. */
  readonly shards: readonly number[];
  batch = BATCH;
  /** Whether the positions of its shards are known. */
  hasBegun = false;
  hasLostConnection = false;
  stopWaiting: () => void = () => {};

  constructor({ redis, keys }: Reader, shards: Shards) {
    this.redis = redis;
    this.streams = keys;
    this.shards = keys.map((key) => shards.all.findIndex(({ events }) => events === key));
    redis.on("close", () => {
      this.hasLostConnection = true;
    });
  }

  /** The read's answer, or null once the feed stops. (`Promise.race` with one lasting promise would keep every answer.) */
  orStopped<T>(read: Promise<T>): Promise<T | null> {
    return new Promise((resolve, reject) => {
      this.stopWaiting = () => resolve(null);
      read.then(resolve, reject);
    });
  }
}

export class Feed {
  readonly #redis: Redis;
  readonly #readers: readonly ShardReader[];
  readonly #log: Log;
  readonly #sinks = new Map<string, Set<Sink>>();
  /** For all subscribers of this gateway. */
  readonly fanOut = new FanOut();
  #positions: string[] = [];
  /** Delegation id → its newest delivered event, in two generations; a full newer one replaces the older one. */
  #newest = new Map<string, string>();
  #newestBefore = new Map<string, string>();
  /** By shard, the feed's position when the map `#newest` was started. */
  #newestSince: string[] = [];
  /** The same for `#newestBefore`: every delegation with a later event is in one of the two maps. */
  #rememberedSince: string[] = [];
  #running = false;
  #done: Promise<unknown> = Promise.resolve();

  /** `readers` are the feed's own connections, because their reads block; `redis` is shared. */
  constructor(redis: Redis, readers: readonly Reader[], shards: Shards, log: Log) {
    this.#redis = redis;
    this.#readers = readers.map((reader) => new ShardReader(reader, shards));
    this.#log = log;
  }

  /**
   * If a shard's slot is moving, its feed starts after the move. Then all streams of this gateway are cut, and resume by
   * cursor.
   */
  async start(): Promise<void> {
    await Promise.all(
      this.#readers.map((reader) =>
        this.#begin(reader).catch((error: unknown) => {
          if (!isMovingSlot(error)) throw error;
        }),
      ),
    );
    this.#running = true;
    this.#done = Promise.all(this.#readers.map((reader) => this.#run(reader)));
  }

  async #begin(reader: ShardReader): Promise<void> {
    const found = await Promise.all(reader.streams.map((stream) => edges(this.#redis, stream)));
    for (const [at, shard] of reader.shards.entries()) this.#positions[shard] = found[at]?.last ?? "0-0";
    reader.hasBegun = true;
    this.#forget();
  }

  /**
   * Whether events of the delegation after this one may have been delivered already. A subscriber that starts now may
   * have missed them.
   */
  mayHaveDelivered(shard: number, delegation_id: string, after: string): boolean {
    const found = this.#newest.get(delegation_id) ?? this.#newestBefore.get(delegation_id);
    const newest = found ?? this.#rememberedSince[shard] ?? "0-0";
    return compareIds(newest, after) > 0;
  }

  async stop(): Promise<void> {
    this.#running = false;
    for (const { redis } of this.#readers) redis.disconnect();
    // `disconnect` does not end a read that waits for a new connection; this does.
    for (const reader of this.#readers) reader.stopWaiting();
    await this.#done;
  }

  subscribe(source: Source, sink: Sink): () => void {
    const key = keyOf(source);
    const sinks = this.#sinks.get(key) ?? new Set();
    this.#sinks.set(key, sinks.add(sink));
    return () => {
      sinks.delete(sink);
      if (sinks.size === 0 && this.#sinks.get(key) === sinks) this.#sinks.delete(key);
    };
  }

  async #run(reader: ShardReader): Promise<void> {
    const { streams, shards } = reader;
    for (let failures = 0; this.#running; ) {
      try {
        if (!reader.hasBegun) {
          await this.#begin(reader);
          if (!this.#running) return;
          this.#reportGap();
        }
        const read = reader.redis.xread(
          "COUNT",
          reader.batch,
          "BLOCK",
          BLOCK_MS,
          "STREAMS",
          ...streams,
          ...shards.map((shard) => this.#positions[shard] ?? "0-0"),
        );
        const answer = await reader.orStopped(read);
        if (!this.#running) return;
        const full = (answer ?? []).some(([, entries]) => entries.length === reader.batch);
        if (reader.hasLostConnection || full) await this.#closeGap(reader);
        let count = 0;
        let chars = 0;
        for (const [stream, entries] of answer ?? []) {
          const shard = shards[streams.indexOf(stream)] ?? 0;
          for (const [id, flat] of entries) {
            const entry = toEntry(shard, id, flat);
            this.#deliver(entry);
            count += 1;
            chars += sizeOf(entry);
          }
        }
        const fit = Math.floor((BATCH_CHARS * count) / (chars + 1));
        if (count > 0) reader.batch = Math.max(MIN_BATCH, Math.min(BATCH, fit));
        failures = 0;
      } catch (error) {
        if (!this.#running) return;
        const level = isUnavailable(error) ? "debug" : "warn";
        this.#log[level]({ err: error instanceof Error ? error.message : "unknown" }, "feed interrupted");
        failures += 1;
        await sleep(doublingMs(failures, 50, 1_000));
      }
    }
  }

  /**
   * Runs after a lost connection, or when one read could not return everything. When the stream was trimmed past our
   * position, or the Redis that answers now does not have all that the earlier one had, subscribers have a gap and resume
   * by their cursors.
   */
  async #closeGap(reader: ShardReader): Promise<void> {
    const hadLost = reader.hasLostConnection;
    reader.hasLostConnection = false;
    try {
      for (const [at, shard] of reader.shards.entries()) {
        const position = this.#positions[shard] ?? "0-0";
        const { missed, last } = await edges(reader.redis, reader.streams[at] ?? "", position);
        if (!missed && compareIds(last, position) >= 0) continue;
        this.#positions[shard] = last;
        this.#forget();
        this.#reportGap();
      }
    } catch (error) {
      reader.hasLostConnection ||= hadLost;
      throw error;
    }
  }

  #reportGap(): void {
    for (const sinks of this.#sinks.values()) for (const sink of sinks) sink.gap();
  }

  #deliver(entry: Entry): void {
    if (compareIds(entry.id, this.#positions[entry.shard] ?? "0-0") <= 0) return;
    this.#positions[entry.shard] = entry.id;
    this.#remember(entry);
    const target = `agent:${entry.target}`;
    this.#push(`d ${entry.delegation_id}`, entry);
    this.#push(`p ${entry.delegator}`, entry);
    if (target !== entry.delegator) this.#push(`p ${target}`, entry);
    this.#push(`t ${rootOf(entry)}`, entry);
    this.#push("all", entry);
  }

  #remember({ delegation_id, id }: Entry): void {
    this.#newest.set(ownText(delegation_id), id);
    if (this.#newest.size < REMEMBERED) return;
    this.#newestBefore = this.#newest;
    this.#newest = new Map();
    this.#rememberedSince = this.#newestSince;
    this.#newestSince = [...this.#positions];
  }

  /** Forgets earlier events. */
  #forget(): void {
    this.#newest = new Map();
    this.#newestBefore = new Map();
    this.#rememberedSince = [...this.#positions];
    this.#newestSince = [...this.#positions];
  }

  #push(key: string, entry: Entry): void {
    const sinks = this.#sinks.get(key);
    if (sinks) for (const sink of sinks) sink.push(entry);
  }
}
