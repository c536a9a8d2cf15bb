/**
 * Random walks through the whole lifecycle, compared with the model after every step. `npm run prove -- model --runs 5000`
 * walks further; a failure prints the seed and the path that replay it.
 */
import * as fc from "fast-check";
import { expect } from "vitest";
import { MOVE_NAMES } from "../../src/lifecycle/states.ts";
import { agentSteps, leases } from "./agent-steps.ts";
import { awaitSteps } from "./await-steps.ts";
import { delegations, delegatorSteps } from "./delegator-steps.ts";
import { pushSteps } from "./push-steps.ts";
import { Real } from "./real.ts";
import { checkRule, ruleSteps } from "./rule-steps.ts";
import { spendSteps } from "./spend-steps.ts";
import { timeSteps } from "./time-steps.ts";

const { MODEL_SEED, MODEL_PATH, MODEL_REPLAY } = process.env;
const STARTS = 10;
/** Commands offered to a walk. It skips those that make no sense at their turn, and runs at most as many as step.ts says. */
const OFFERED = 110;
/** Moves that no record shows, or that need more events than a walk makes. */
const ELSEWHERE: readonly string[] = [
  "adopt",
  "redrive",
  "expect",
  "spend",
  "follow_up",
  "reticket",
  "give_up",
  "age",
  "ask_people",
];
/** The moves that a record shows, and every error code that a walk can get. */
const EVERYWHERE = [
  ...MOVE_NAMES.filter((name) => !ELSEWHERE.includes(name)),
  "already_finished",
  "wrong_state",
  "lease_lost",
  "lease_unknown",
  "interrupt_not_open",
  "invalid_request",
  "not_a_child",
  "waited for what had ended",
  "forbidden",
  "delegation_not_found",
  "delegation_loop",
  "queue_full",
  "agent_busy",
  "asked again",
  "again with the answer",
  "held again",
  "used before",
  "answer_unknown",
  "usage_shrinks",
  "reported usage",
  "an answer that does not fit",
  "replied again",
  "made again",
  "joined late",
  "approval_required",
  "approved by a rule",
  "denied by a rule",
  "again with the answer of a rule",
  "revoked a rule",
  "voted again",
  "voided votes",
  "a vote by a rule",
];
// Ten times what they take on a quiet machine.
export const patienceMs = (runs: number): number => 180_000 + runs * 4_000;

/** Walks until a walk fails. From 60 walks on, every move and error code must occur. */
export async function walks(runs: number): Promise<void> {
  const real = await Real.start();
  const steps = [
    ...delegatorSteps,
    ...agentSteps,
    ...awaitSteps,
    ...timeSteps,
    ...pushSteps,
    ...spendSteps,
    ...ruleSteps,
  ].flatMap(([often, one]) => Array.from({ length: often }, () => one));
  // Starts with work, because a walk without any soon ends.
  const starts = fc.array(fc.oneof(delegations, leases), { minLength: 4, maxLength: STARTS });
  const walks = fc.commands(steps, {
    maxCommands: OFFERED,
    size: "max",
    ...(MODEL_REPLAY !== undefined && { replayPath: MODEL_REPLAY }),
  });
  const walk = fc.asyncProperty(starts, fc.noBias(walks), async (start, commands) => {
    const model = await real.begin();
    await fc.asyncModelRun(() => ({ model: { model }, real }), start);
    await fc.asyncModelRun(() => ({ model: { model }, real }), commands);
    for (const rule of model.rules) await checkRule(model, real, rule);
    await real.end(model);
  });
  const walkOn = (numRuns: number) =>
    fc.assert(walk, {
      numRuns,
      ...(MODEL_SEED !== undefined && { seed: Number(MODEL_SEED) }),
      ...(MODEL_PATH !== undefined && { path: MODEL_PATH, endOnFailure: true }),
    });
  await walkOn(runs);
  // So few walks may miss what is rare: some more then look for it.
  const missed = () => EVERYWHERE.filter((what) => !real.counts.has(what));
  const mustCover = runs >= 60 && MODEL_SEED === undefined && MODEL_PATH === undefined;
  for (let more = 0; mustCover && more < 10 && missed().length > 0; more += 1) await walkOn(40);
  const { counted, summed } = await real.kept();
  expect(counted).toEqual(summed);
  if (mustCover) expect(missed()).toEqual([]);
}
