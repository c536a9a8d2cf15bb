/** Steps that use more than a budget allows, which is too rare otherwise. */
import * as fc from "fast-check";
import { via } from "./delegator-steps.ts";
import type { Held } from "./item.ts";
import { DEFAULT_TTL, UNIT } from "./model.ts";
import { judge } from "./real.ts";
import { isLiving, type Step, step } from "./step.ts";
import { sweepBoth } from "./time-steps.ts";

const MUCH = 50;
const spends = (held: Held): boolean =>
  isLiving(held) && held.item.budget !== null && !held.item.budget.isOver;

/** The holder reports so much that the budget is exceeded, and its time passes. */
const overspend = step<{ via: number }>({
  name: "overspend",
  check: (model) => model.leases.some(spends) && model.now + 2 * UNIT - model.startedAt < DEFAULT_TTL,
  async run(model, real, { via }) {
    const held = model.leases.findLast(spends);
    if (!held) return;
    const { item } = held;
    const caller = `agent:${item.target}`;
    const refusal = model.mayWork(caller, held) ?? model.mayReport(item, MUCH);
    const usage = { input_tokens: MUCH };
    judge(await real.call(via, caller, "POST", `/v1/leases/${held.id}/heartbeat`, { usage }), refusal);
    if (refusal) return;
    model.report(item, MUCH, false);
    model.move("heartbeat", item);
    // Once for the notice, once for the end of its time.
    for (let n = 0; n < 2; n += 1) {
      model.settle();
      await real.settled();
      real.move(UNIT);
      model.now += UNIT;
      await sweepBoth(model, real, via);
    }
  },
});

/** The steps, each with its weight. */
export const spendSteps: readonly [number, fc.Arbitrary<Step>][] = [[6, fc.record({ via }).map(overspend)]];
