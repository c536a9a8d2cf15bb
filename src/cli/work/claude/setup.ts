/** How `errand work --preset claude` works when people are asked: what all its runs share. */
import { type Command, InvalidArgumentError } from "commander";
import type { AskTimes, brokerApprovals } from "../acp/approvals.ts";
import { HOLD_SECONDS, STICKY_SECONDS } from "../acp/options.ts";
import type { ChildProcesses, RunLimits } from "../child.ts";
import type { CommandEnvironment } from "../command-env.ts";
import type { Ask } from "../presets/way.ts";

export interface ClaudeOptions extends AskTimes {
  readonly program: string;
  /** More arguments for it. */
  readonly extra: readonly string[];
  readonly children: ChildProcesses;
  readonly environment: CommandEnvironment;
  readonly limits: RunLimits;
  /** XDG_STATE_HOME */
  readonly stateHome: string | undefined;
  /** Prints a line for the person who runs the worker. */
  readonly warn: (text: string) => void;
  /** Calls are put off in the conversation itself: no process waits. */
  readonly parks: boolean;
  /** How long requests are collected before they are asked together. */
  readonly collectMs?: number;
  /** How long the program has to store the conversation after its question is parked. */
  readonly settleMs?: number;
  /** A conversation that does not go on with its deferred call within this time gets a message to do so. */
  readonly goesOnMs?: number;
  /** Default: the broker's. */
  readonly approvals?: typeof brokerApprovals;
}

/** What all runs share. */
export interface ClaudeSetup extends ClaudeOptions {
  readonly collectMs: number;
  readonly settleMs: number;
  readonly goesOnMs: number;
  /** One delegation at least was completed. */
  readonly hasWorked: () => boolean;
}

/** The options of `errand work --preset claude`, besides --ask and --hold, which it shares with other agents. */
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
