/** How `errand work --acp` works: what all its runs share. */
import type { Work } from "../../../client/work.ts";
import type { RunLimits } from "../child.ts";
import type { ProcessSetup } from "./agent-process.ts";
import type { AskTimes, brokerApprovals } from "./approvals.ts";
import type { ModeChoice } from "./mode.ts";
import type { Usage } from "./usage.ts";

export interface AcpOptions extends ProcessSetup, AskTimes {
  readonly choice: ModeChoice;
  /** The agent asks in each of its modes, because of how it is started. */
  readonly asksItself?: boolean;
  readonly limits: RunLimits;
  /** XDG_STATE_HOME */
  readonly stateHome: string | undefined;
  /** Prints a line for the person who runs the worker. */
  readonly warn: (text: string) => void;
  /** How long requests are collected before they are asked together. */
  readonly collectMs?: number;
  /** How long an agent whose question is asked has to store the conversation, before its process ends. */
  readonly settleMs?: number;
  /** How long the agent has to open a conversation; as long as it has to start, if absent. */
  readonly openTimeoutMs?: number;
  /** How long a canceled agent has to end its turn. */
  readonly cancelGraceMs?: number;
  /** Default: the broker's. */
  readonly approvals?: typeof brokerApprovals;
  /** Gets what a run has used. */
  readonly onUsage?: (task: Work, usage: Usage) => void;
}

/** What all runs share. */
export interface AcpSetup extends AcpOptions {
  readonly collectMs: number;
  readonly settleMs: number;
  readonly cancelGraceMs: number;
  readonly noteUnknownMode: () => void;
  /** One delegation at least was completed. */
  readonly hasWorked: () => boolean;
}
