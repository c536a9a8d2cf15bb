/** A text that whichever gateway needs it first makes, and that all gateways then find in Redis, such as a key. */
import type { Redis } from "./connect.ts";

export class MadeOnce {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #make: () => Promise<string> | string;
  #found: Promise<string> | null = null;

  constructor(redis: Redis, key: string, make: () => Promise<string> | string) {
    this.#redis = redis;
    this.#key = key;
    this.#make = make;
  }

  get(): Promise<string> {
    this.#found ??= this.#find().catch((error: unknown) => {
      this.#found = null;
      throw error;
    });
    return this.#found;
  }

  async #find(): Promise<string> {
    const known = await this.#redis.get(this.#key);
    if (known !== null) return known;
    await this.#redis.set(this.#key, await this.#make(), "NX");
    const made = await this.#redis.get(this.#key);
    if (made === null) throw new Error(`${this.#key} was not stored`);
    return made;
  }
}
