/** How `errand work --preset claude` works when people are asked: what all its runs share. */
import type { AskTimes, brokerApprovals } from "../acp/approvals.ts";
import type { ChildProcesses, RunLimits } from "../child.ts";
import type { CommandEnvironment } from "../command-env.ts";

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
