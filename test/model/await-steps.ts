/** The waits of agents for children in a walk. Limit: what a lease shows of the children is tested elsewhere. */
import * as fc from "fast-check";
import { expect } from "vitest";
import { isTerminal } from "../../src/schema/delegation.ts";
import { principal, who } from "./agent-steps.ts";
import { agentIndex, nameOf, pick, rarely, refusesNew, span, via } from "./delegator-steps.ts";
import type { Held, Refusal } from "./item.ts";
import { count, type Model } from "./model.ts";
import { compare, judge, type Real } from "./real.ts";
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

const liveChildren = ({ item }: Held): number =>
  item.children.filter(({ state }) => !isTerminal(state)).length;

async function waitFor(model: Model, real: Real, { via, pick, by, wrong, until, limit }: Wait) {
  const leading = model.leases.filter((held) => isLiving(held) && liveChildren(held) > 0);
  const [most] = leading.sort((a, b) => liveChildren(b) - liveChildren(a));
  const held = (pick.fitting ? most : undefined) ?? pickLease(model, pick);
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
  await real.check(item, model);
}

const wait = step<Wait>({ name: "await", check: mayPick, run: waitFor });

/** A holder delegates two parts of its work, and waits for both. */
const parts = step<{ via: number; target: number }>({
  name: "delegate parts",
  check: (model) => model.leases.some(isLiving),
  async run(model, real, { via, target: index }) {
    const { item } = pickLease(model, { n: 0, fitting: true });
    const [by, target] = [`agent:${item.target}`, nameOf(model, index)];
    for (let n = 0; n < 2; n += 1) {
      const refusal = refusesNew(model, by, target, item);
      const body = { target, task: "a part", parent_id: item.id, priority: 9, max_attempts: 2 };
      const answer = await real.call(via, by, "POST", "/v1/delegations", body);
      judge(answer, refusal, 202);
      if (refusal) return;
      const made = { target, delegator: by, parent: item, priority: 9, maxAttempts: 2 };
      compare(model.submit({ id: answer.body.id, ...made }), answer.body);
    }
    const pick = { n: 0, fitting: true };
    await waitFor(model, real, { via, pick, by: "holder", wrong: false, until: "all", limit: undefined });
  },
});

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
  [6, fc.record({ via, target: agentIndex }).map(parts)],
];
