import { signal } from "@preact/signals";

/** A map; components that read it are drawn again when it changes. */
export class SignalMap<T> {
  readonly #map = signal<ReadonlyMap<string, T>>(new Map());

  get(id: string): T | undefined {
    return this.#map.value.get(id);
  }

  keys(): string[] {
    return [...this.#map.value.keys()];
  }

  entries(): [string, T][] {
    return [...this.#map.value];
  }

  set(id: string, value: T): void {
    this.#map.value = new Map(this.#map.peek()).set(id, value);
  }

  clear(): void {
    this.#map.value = new Map();
  }

  delete(id: string): void {
    const left = new Map(this.#map.peek());
    if (left.delete(id)) this.#map.value = left;
  }
}
