/**
 * Caches look-ups until something of their kind changes. Every change also stores a new mark in Redis. The mark is read at
 * most once a second, and a new one empties the cache: one read serves all look-ups, and a change at another gateway is
 * noticed within a second, even if no message tells of it.
 */
import { LRUCache } from "lru-cache";

const CHECKED_MS = 1_000;
/**
 * Longer than a poll may wait, so that an agent that only polls is not looked up each time. A change by a gateway of an
 * older version, which stores no mark, is noticed after this time.
 */
const KEPT_MS = 120_000;

interface Entry<T> {
  readonly value: T;
  readonly until: number;
}

export interface MarkedCacheOptions<T> {
  readonly readMark: () => Promise<string | null>;
  readonly maxBytes: number;
  /** The approximate size of a value. */
  readonly bytesOf: (value: T) => number;
}

export class MarkedCache<T> {
  readonly #readMark: () => Promise<string | null>;
  readonly #entries: LRUCache<string, Entry<T>>;
  #mark: string | null = null;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #checking: Promise<void> | null = null;
  /** Counts what was dropped: a look-up that began before must not be stored. */
  #dropped = 0;

  constructor({ readMark, maxBytes, bytesOf }: MarkedCacheOptions<T>) {
    this.#readMark = readMark;
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ value }, key) => key.length + bytesOf(value),
    });
  }

  /** The cached value, or that of `load`; null is not stored. Rejects if the mark cannot be read. */
  async find(key: string, load: () => Promise<T | null>): Promise<T | null> {
    if (performance.now() - this.#checkedAt >= CHECKED_MS) await this.#check();
    const cached = this.#entries.get(key);
    if (cached && cached.until > performance.now()) return cached.value;
    return this.load(key, load);
  }

  /** The value of `load`, stored for later. */
  async load(key: string, load: () => Promise<T | null>): Promise<T | null> {
    const dropped = this.#dropped;
    const value = await load();
    if (dropped !== this.#dropped) return value;
    if (value === null) this.#entries.delete(key);
    else this.#entries.set(key, { value, until: performance.now() + KEPT_MS });
    return value;
  }

  /** The value as it was when the mark was read last. */
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

  /** Callers at the same time share one read. */
  #check(): Promise<void> {
    this.#checking ??= this.#compareMark().finally(() => {
      this.#checking = null;
    });
    return this.#checking;
  }

  async #compareMark(): Promise<void> {
    const startedAt = performance.now();
    const mark = await this.#readMark();
    if (mark !== this.#mark) this.clear();
    this.#mark = mark;
    this.#checkedAt = startedAt;
  }
}
