/**
 * Caches look-ups until something of their kind changes. Every change also stores a new mark in Redis. The mark is read at
 * most once a second, and an entry counts only if it was read with the present mark: so one read serves all look-ups, and a
 * change at another gateway is noticed within a second, even if no message tells of it. After a fail-over that loses a
 * change, the earlier mark is back, too. Limit: what is missing is not cached.
 */
import { LRUCache } from "lru-cache";

const CHECKED_MS = 1_000;
/**
 * Longer than a poll may wait, so that an agent that only polls is not looked up each time. A change by a gateway of an
 * older version, which stores no mark, is noticed after this time.
 */
const KEPT_MS = 120_000;

/** A mark; null before the first change. */
type Mark = string | null;

/** A value, and the mark that was read in the same step. */
export interface Marked<T> {
  readonly value: T | null;
  readonly mark: Mark;
}

interface Entry<T> {
  readonly value: T;
  readonly mark: Mark;
  readonly until: number;
}

/** The last mark that was read, for entries that share it. */
export class LastMark {
  readonly #read: () => Promise<Mark>;
  #mark: Mark = null;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;

  constructor(read: () => Promise<Mark>) {
    this.#read = read;
  }

  get isRecent(): boolean {
    return performance.now() - this.#readAt < CHECKED_MS;
  }

  isThe(mark: Mark): boolean {
    return mark === this.#mark;
  }

  /** Callers at the same time share one read. */
  refresh(): Promise<void> {
    this.#reading ??= this.#refresh().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #refresh(): Promise<void> {
    const startedAt = performance.now();
    this.#mark = await this.#read();
    this.#readAt = startedAt;
  }
}

export interface MarkedCacheOptions<T> {
  readonly maxBytes: number;
  /** The approximate size of a value. */
  readonly bytesOf: (value: T) => number;
}

export class MarkedCache<T> {
  readonly #entries: LRUCache<string, Entry<T>>;
  /** Counts what was dropped: a look-up that began before must not be stored. */
  #dropped = 0;

  constructor({ maxBytes, bytesOf }: MarkedCacheOptions<T>) {
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ value }, key) => key.length + bytesOf(value),
    });
  }

  /** The cached value, or that of `load`. Rejects if the mark cannot be read. */
  async find(key: string, last: LastMark, load: () => Promise<Marked<T>>): Promise<T | null> {
    if (!last.isRecent) await last.refresh();
    const cached = this.#entries.get(key);
    if (cached && last.isThe(cached.mark) && cached.until > performance.now()) return cached.value;
    return this.load(key, load);
  }

  /** The value of `load`, stored for later. */
  async load(key: string, load: () => Promise<Marked<T>>): Promise<T | null> {
    const dropped = this.#dropped;
    const { value, mark } = await load();
    if (dropped !== this.#dropped) return value;
    if (value === null) this.#entries.delete(key);
    else this.#entries.set(key, { value, mark, until: performance.now() + KEPT_MS });
    return value;
  }

  /** The value as it was read last, unless it was dropped since. */
  lastKnown(key: string): T | null {
    return this.#entries.peek(key)?.value ?? null;
  }

  delete(key: string): void {
    this.#dropped += 1;
    this.#entries.delete(key);
  }

  clear(): void {
    this.#dropped += 1;
    this.#entries.clear();
  }
}
