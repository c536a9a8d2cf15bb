/** Steps that concern all in a walk: time, the sweep, settings of agents. Limit: agents are deleted only at its end. */
import * as fc from "fast-check";
import { agentIndex, nameOf, pick, via } from "./delegator-steps.ts";
import type { Item } from "./item.ts";
import { DEFAULT_TTL, type Model, UNIT } from "./model.ts";
import { judge, type Real } from "./real.ts";
import { type Pick, pickItem, type Step, step } from "./step.ts";

const pass = step<{ via: number; units: number; swept: boolean }>({
  name: "pass",
  // Default deadlines are whole units, so a walk must end before they are due.
  check: (model, { units }) => model.now + units * UNIT - model.startedAt < DEFAULT_TTL,
  async run(model, real, { via, units, swept }) {
    // Otherwise the sweep would also make the pending deliveries.
    await real.settled();
    real.move(units * UNIT);
    model.now += units * UNIT;
    if (swept) await sweepBoth(model, real, via);
  },
});

const away = step<{ via: number; units: number }>({
  name: "away",
  check: (model, { units }) => model.now + units * UNIT - model.startedAt < DEFAULT_TTL,
  async run(model, real, { via, units }) {
    await real.settled();
    await real.away(units * UNIT);
    model.outage(units * UNIT);
    await sweepBoth(model, real, via);
  },
});

export async function sweepBoth(model: Model, real: Real, via: number): Promise<void> {
  await real.sweep(via);
  model.sweep();
  for (const item of model.items) await real.check(item, model);
}

const sweep = step<{ via: number }>({
  name: "sweep",
  run: (model, real, { via }) => sweepBoth(model, real, via),
});

const pause = step<{ via: number; agent: number; paused: boolean }>({
  name: "pause",
  async run(model, real, { via, agent, paused }) {
    const name = nameOf(model, agent);
    const verb = paused ? "pause" : "resume";
    judge(await real.call(via, "operator", "POST", `/v1/agents/${name}/${verb}`), null);
    model.agent(name).paused = paused;
  },
});

const limit = step<{ agent: number; maxWorking: number | null; maxWaiting: number; serial: boolean }>({
  name: "limit",
  async run(model, real, { agent, maxWorking, maxWaiting, serial }) {
    const found = model.agent(nameOf(model, agent));
    Object.assign(found, { maxWorking, maxWaiting, serial });
    await real.set(found);
  },
});

/** Removes a ticket, as if Redis had lost the write; the next sweep must notice. */
const lose = step<{ via: number; pick: Pick }>({
  name: "lose ticket",
  check: (model) => model.items.some(isQueued),
  async run(model, real, { via, pick }) {
    const item = pickItem(model, pick, isQueued);
    if (!isQueued(item)) return;
    await real.loseTicket(via, item);
    model.lose(item);
  },
});
const isQueued = ({ state, queued }: Item): boolean => state === "submitted" && queued;

const agent = agentIndex;

/** The steps, each with its weight. */
export const timeSteps: readonly [number, fc.Arbitrary<Step>][] = [
  [
    6,
    fc
      .record({ via, units: fc.constantFrom(1, 1, 2, 3), swept: fc.constantFrom(true, true, false) })
      .map(pass),
  ],
  [3, fc.record({ via, units: fc.constantFrom(1, 1, 2) }).map(away)],
  [2, fc.record({ via }).map(sweep)],
  [2, fc.record({ via, pick }).map(lose)],
  [
    2,
    fc
      .record({
        via,
        agent,
        paused: fc.oneof(fc.constant(true), { weight: 2, arbitrary: fc.constant(false) }),
      })
      .map(pause),
  ],
  [
    2,
    fc
      .record({
        agent,
        maxWorking: fc.constantFrom(null, 1, 2),
        maxWaiting: fc.constantFrom(1, 2, 10_000),
        serial: fc.constantFrom(true, true, false),
      })
      .map(limit),
  ],
];
