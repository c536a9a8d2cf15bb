/** One command of a walk: what it is called with, and what it does to both. Limit: arguments are plain JSON. */
import type * as fc from "fast-check";
import type { Held, Item } from "./item.ts";
import type { Model } from "./model.ts";
import type { Real } from "./real.ts";

/** Wrapped, for fast-check's view of a model is a mapped type, which a class with private fields is not. */
export interface Walk {
  readonly model: Model;
}
export type Step = fc.AsyncCommand<Walk, Real>;

/** Commands that a walk takes at most. */
export const STEPS = 60;

interface Deed<Args> {
  readonly name: string;
  /** Whether it makes sense now; a walk leaves it out otherwise. */
  readonly check?: (model: Model, args: Args) => boolean;
  readonly run: (model: Model, real: Real, args: Args) => Promise<void>;
}

export const step =
  <Args>({ name, check = () => true, run }: Deed<Args>) =>
  (args: Args): Step => ({
    check: ({ model }) => model.taken < STEPS && check(model, args),
    run: ({ model }, real) => {
      model.taken += 1;
      return run(model, real, args);
    },
    toString: () => `${name}(${JSON.stringify(args)})`,
  });

/** A choice that stays where it is while a counterexample shrinks: 0 is the newest. */
export interface Pick {
  readonly n: number;
  /** Among those that the command is meant for, if there are any. */
  readonly fitting: boolean;
}

function among<T>(all: readonly T[], pick: Pick, fits: (one: T) => boolean): T {
  const fitting = pick.fitting ? all.filter(fits) : [];
  const from = fitting.length > 0 ? fitting : all;
  const found = from[from.length - 1 - (pick.n % from.length)];
  if (found === undefined) throw new RangeError("nothing to pick from");
  return found;
}

export const pickItem = (model: Model, pick: Pick, fits: (item: Item) => boolean): Item =>
  among(model.items, pick, fits);

export const isLiving = ({ item, fence }: Held): boolean => item.state === "working" && item.fence === fence;

export const pickLease = (model: Model, pick: Pick): Held => among(model.leases, pick, isLiving);

export const hasItems = (model: Model): boolean => model.items.length > 0;
/** There is a lease, and a living one where one is meant. */
export const mayPick = (model: Model, { pick }: { pick: Pick }): boolean =>
  model.leases.some((lease) => !pick.fitting || isLiving(lease));
