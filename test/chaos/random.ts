/** A seeded generator: the same seed and name give the same numbers. Limit: not for secrets. */
import { createHash } from "node:crypto";
import { mulberry32 } from "../support/random.ts";

export class Random {
  /** A number from 0 to below 1. */
  readonly next: () => number;

  /** Each name has its own sequence, so an additional draw in one place changes nothing in others. */
  constructor(seed: number, name: string) {
    this.next = mulberry32(createHash("sha256").update(`${seed}/${name}`).digest().readUInt32LE(0));
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  int(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new RangeError("nothing to pick from");
    return item;
  }

  /** One of the names, each as likely as its weight. */
  weighted<N extends string>(weights: Readonly<Record<N, number>>): N {
    const names: N[] = [];
    let total = 0;
    for (const name in weights) {
      names.push(name);
      total += weights[name];
    }
    let rest = this.next() * total;
    for (const name of names) {
      rest -= weights[name];
      if (rest < 0) return name;
    }
    return this.pick(names);
  }
}
