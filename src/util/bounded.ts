/** A Map and a Set of bounded size: a new entry drops the oldest, and an entry that is set again becomes the newest. */

export class BoundedMap<K, V> extends Map<K, V> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    dropOldest(this, this.#max);
    return this;
  }
}

export class BoundedSet<T> extends Set<T> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override add(value: T): this {
    this.delete(value);
    super.add(value);
    dropOldest(this, this.#max);
    return this;
  }
}

function dropOldest<K>(entries: Pick<Map<K, unknown>, "size" | "keys" | "delete">, max: number): void {
  if (entries.size <= max) return;
  const oldest = entries.keys().next();
  if (!oldest.done) entries.delete(oldest.value);
}
