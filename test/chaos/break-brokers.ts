/**
 * Runs each broken broker and checks that the right rule finds the defect. The runs are short and without faults: the
 * defects show by themselves.
 */
import { DEFECTS, isDefect } from "./defects.ts";
import { UsageError } from "./flags.ts";
import type { Options } from "./options.ts";
import { type RunHooks, runChaos } from "./run.ts";

const SMALL: Partial<Options> = {
  ...{ minutes: 0.15, gateways: 2, delegators: 1, agents: 1, subscribers: 1, rate: 12, leaseSeconds: 1 },
  ...{ faults: ["none"], patienceSeconds: 12 },
};

/** The exit code: 0 if each defect was found by its rule. */
export async function breakBrokers(options: Options, hooks: RunHooks): Promise<number> {
  const { defect } = options;
  const names = Object.keys(DEFECTS).filter(isDefect);
  const chosen = defect === "all" ? names : names.filter((name) => name === defect);
  if (chosen.length === 0)
    throw new UsageError(`--defect ${defect}: give all or one of ${names.join(", ")}.`);
  let unseen = 0;
  for (const name of chosen) {
    if (hooks.stop?.aborted) return 1;
    const small = { ...options, ...SMALL, ...DEFECTS[name].with, defect: name };
    const { verdict, found } = await runChaos(small, { ...hooks, say: () => undefined });
    const seen = verdict.violations.filter(({ rule }) => rule === name).length;
    if (seen === 0) unseen += 1;
    const others = [...found.keys()].filter((rule) => rule !== name).join(", ");
    hooks.say(
      `${seen > 0 ? "found" : "NOT FOUND"}  ${name.padEnd(16)} ${DEFECTS[name].what}: ${seen} times${others === "" ? "" : `; also ${others}`}`,
    );
  }
  hooks.say(unseen === 0 ? `all ${chosen.length} broken brokers were found` : `${unseen} were not found`);
  return unseen === 0 ? 0 : 1;
}
