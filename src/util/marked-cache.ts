/**
 * A cache that notices changes at other gateways. Every change replaces a random mark in Redis. The mark is read at most
 * once a second, and an entry is valid only if it was read with the current mark, so a change is noticed within a second,
 * even if no message announces it. If a fail-over undoes a change, the old mark returns with the old value. Limit: one
 * change invalidates all entries; missing values are not cached.
 */
import { LRUCache } from "lru-cache";

const MARK_TTL_MS = 1_000;
/** Longer than a poll waits, so that a poll does not cause a look-up. */
const MAX_AGE_MS = 120_000;

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
    return performance.now() - this.#readAt < MARK_TTL_MS;
  }

  /** As it was read last; null before that. */
  get value(): Mark {
    return this.#mark;
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

/** Values by key, bounded in bytes; the least recently used are dropped first. */
export class MarkedCache<T> {
  readonly #entries: LRUCache<string, Entry<T>>;
  /** Counts drops. A look-up that started before a drop is not stored: it may have read the old value. */
  #dropped = 0;

  constructor({ maxBytes, bytesOf }: MarkedCacheOptions<T>) {
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ value }, key) => key.length + bytesOf(value),
    });
  }

  /** The cached value, or what `read` returns. Rejects if the mark cannot be read. */
  async find(key: string, last: LastMark, read: () => Promise<Marked<T>>): Promise<T | null> {
    if (!last.isRecent) await last.refresh();
    const cached = this.#entries.get(key);
    if (cached && cached.mark === last.value && cached.until > performance.now()) return cached.value;
    return this.reload(key, read);
  }

  /** Reads the value now, and caches it. */
  async reload(key: string, read: () => Promise<Marked<T>>): Promise<T | null> {
    const dropped = this.#dropped;
    const { value, mark } = await read();
    if (dropped !== this.#dropped) return value;
    if (value === null) this.#entries.delete(key);
    else this.#entries.set(key, { value, mark, until: performance.now() + MAX_AGE_MS });
    return value;
  }

  /** The cached value, however old, unless it was dropped. */
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
