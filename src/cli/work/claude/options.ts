/** The options of `errand work --preset claude`, besides --ask and --hold, which it shares with other agents. */
import { type Command, InvalidArgumentError } from "commander";
import type { AskTimes } from "../acp/approvals.ts";
import { HOLD_SECONDS, STICKY_SECONDS } from "../acp/options.ts";
import type { Ask } from "../presets/way.ts";

export interface ClaudeFlags {
  readonly ask?: Ask;
  readonly hold?: number;
  readonly sticky?: number;
  readonly maxBudgetUsd?: number;
}

export const withClaudeOptions = (command: Command): Command =>
  command.option(
    "--max-budget-usd <amount>",
    "with --preset claude, what a run may cost in US dollars",
    amount,
  );

function amount(text: string): number {
  const number = /^(?:\d+(?:\.\d+)?|\.\d+)$/.test(text) ? Number(text) : 0;
  if (number > 0) return number;
  throw new InvalidArgumentError("It must be an amount above 0, such as 2.50.");
}

export interface ClaudeChoice extends AskTimes {
  readonly ask: Ask;
  readonly maxBudgetUsd: number | undefined;
}

/** Undefined without --preset claude. Throws if options do not go together. */
export function claudeChoice(flags: ClaudeFlags, preset: string | undefined): ClaudeChoice | undefined {
  const { ask = "hold", sticky = STICKY_SECONDS, maxBudgetUsd } = flags;
  const { hold = ask === "hold" ? HOLD_SECONDS : 0 } = flags;
  if (preset === "claude") return { ask, holdMs: hold * 1000, stickyMs: sticky * 1000, maxBudgetUsd };
  if (maxBudgetUsd === undefined) return undefined;
  throw new InvalidArgumentError("--max-budget-usd requires --preset claude.");
}
