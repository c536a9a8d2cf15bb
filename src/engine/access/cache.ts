/** Caches look-ups for a fixed time. Limit: it does not see changes; an entry takes memory for up to twice that time. */
export class Cache<T> {
  readonly #keptMs: number;
  #young = new Map<string, { value: T; until: number }>();
  #old = new Map<string, { value: T; until: number }>();
  #rotateAt = 0;

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  get(key: string): T | undefined {
    const entry = this.#young.get(key) ?? this.#old.get(key);
    return entry && entry.until > Date.now() ? entry.value : undefined;
  }

  set(key: string, value: T): void {
    const now = Date.now();
    if (now >= this.#rotateAt) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#rotateAt = now + this.#keptMs;
    }
    this.#young.set(key, { value, until: now + this.#keptMs });
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }
}
