/**
 * One command of a walk: its arguments, and what it does to the model and to the broker. Limit: arguments are plain
 * JSON.
 */
import type * as fc from "fast-check";
import type { Held, Item } from "./item.ts";
import type { Model } from "./model.ts";
import type { Real } from "./real.ts";

/**
 * Wraps the model, because fast-check maps the type of a model, and a class with private fields does not survive that.
 */
export interface Walk {
  readonly model: Model;
}
export type Step = fc.AsyncCommand<Walk, Real>;

/** The most commands of a walk. */
export const STEPS = 60;

interface Deed<Args> {
  readonly name: string;
  /** Whether the command makes sense now; otherwise the walk skips it. */
  readonly check?: (model: Model, args: Args) => boolean;
  readonly run: (model: Model, real: Real, args: Args) => Promise<void>;
}

export const step =
  <Args>({ name, check = () => true, run }: Deed<Args>) =>
  (args: Args): Step => ({
    check: ({ model }) => model.taken < STEPS && check(model, args),
    run: async ({ model }, real) => {
      model.taken += 1;
      await run(model, real, args);
      // A gateway does so after it has answered.
      if (model.settle()) await real.settled();
    },
    toString: () => `${name}(${JSON.stringify(args)})`,
  });

/** A choice counted from the newest (0), so that it stays the same while a counterexample shrinks. */
export interface Pick {
  readonly n: number;
  /** Choose among those that the command is meant for, if there are any. */
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

export const isLiving = ({ item, fence }: Held): boolean => item.lease !== null && item.fence === fence;

export const pickLease = (model: Model, pick: Pick): Held => among(model.leases, pick, isLiving);

export const hasItems = (model: Model): boolean => model.items.length > 0;
/** Whether there is a lease to pick; a live one, if `fitting` asks for it. */
export const mayPick = (model: Model, { pick }: { pick: Pick }): boolean =>
  model.leases.some((lease) => !pick.fitting || isLiving(lease));
