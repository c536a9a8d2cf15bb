/** The waits of agents for children in a walk. Limit: what a lease shows of the children is tested elsewhere. */
import * as fc from "fast-check";
import { expect } from "vitest";
import { isTerminal } from "../../src/schema/delegation.ts";
import { principal, who } from "./agent-steps.ts";
import { pick, rarely, span, via } from "./delegator-steps.ts";
import type { Refusal } from "./item.ts";
import { count, type Model } from "./model.ts";
import { judge, type Real } from "./real.ts";
import { isLiving, mayPick, type Pick, pickLease, type Step, step } from "./step.ts";

interface Wait {
  readonly via: number;
  readonly pick: Pick;
  readonly by: string;
  /** Name what is no child, too. */
  readonly wrong: boolean;
  readonly until: "all" | "any";
  readonly limit: number | undefined;
}

async function waitFor(model: Model, real: Real, { via, pick, by, wrong, until, limit }: Wait) {
  const leading = model.leases.findLast((held) => isLiving(held) && held.item.children.length > 0);
  const held = (pick.fitting ? leading : undefined) ?? pickLease(model, pick);
  const { item } = held;
  const caller = principal(model, by, held);
  const isWrong = wrong || item.children.length === 0;
  const children = [...item.children.map(({ id }) => id), ...(isWrong ? [item.id] : [])];
  const other: Refusal | null = isWrong ? { code: "not_a_child" } : null;
  const lost = model.mayWork(caller, held);
  const ended = item.children.filter(({ state }) => isTerminal(state)).length;
  const left = (until === "any" ? 1 : children.length) - ended;
  const isMet = !isWrong && left <= 0;
  const refusal = lost ?? (isMet ? null : (model.mayMove("await", item) ?? other));
  const body = { children, until, time_limit_seconds: limit };
  const answer = await real.call(via, caller, "POST", `/v1/leases/${held.id}/await`, body);
  judge(answer, refusal);
  if (refusal === null && isMet) {
    model.move("heartbeat", item);
    expect(answer.body.awaited.outcome).toBe("ended");
    count(model.made, "waited for what had ended");
  } else if (refusal === null) {
    expect(answer.body.awaits.left).toBe(left);
    model.await(item, left, limit);
  }
  await real.check(item);
}

const wait = step<Wait>({ name: "await", check: mayPick, run: waitFor });

/** The steps, each with its weight. */
export const awaitSteps: readonly [number, fc.Arbitrary<Step>][] = [
  [
    5,
    fc
      .record({
        via,
        pick,
        by: who,
        wrong: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
        until: fc.constantFrom("all" as const, "any" as const),
        limit: rarely(span(3)),
      })
      .map(wait),
  ],
];
