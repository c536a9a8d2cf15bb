/** The failures that the broker itself declares, in words. Every other code is an agent's own. */
import type { DelegationError } from "../../schema/delegation.ts";

interface Failure {
  /** What happened. */
  readonly words: string;
  /** What helps; `Try again` and `Delegate again` are buttons. */
  readonly help: string;
}

const FAILURES: ReadonlyMap<string, Failure> = new Map([
  [
    "attempts_exhausted",
    {
      words: "no attempt gave a result",
      help: "Look at the agent's workers, then try again.",
    },
  ],
  [
    "worker_unavailable",
    {
      words: "its workers could not work",
      help: "The timeline has the workers' reasons. Try again when they can work.",
    },
  ],
  [
    "deadline_exceeded",
    {
      words: "the deadline passed",
      help: "If it is still needed, delegate again with a later deadline.",
    },
  ],
  [
    "interrupt_expired",
    {
      words: "its question was not answered",
      help: "Nobody answered its question in time. Try again, and answer sooner.",
    },
  ],
  [
    "budget_exceeded",
    {
      words: "its budget was used up",
      help: "If it is still needed, delegate again with a larger budget.",
    },
  ],
  [
    "not_picked_up",
    {
      words: "no worker took it",
      help: "Start a worker of the agent, then try again.",
    },
  ],
]);

/** Undefined: the code is an agent's own. */
export const failureWords = (code: string): string | undefined => FAILURES.get(code)?.words;

/**
 * What helps against the broker's own failure; undefined if the agent declared it, perhaps with one of the broker's codes:
 * then the recovery only points at the message.
 */
export function ownHelp({ code, recovery }: Pick<DelegationError, "code" | "recovery">): string | undefined {
  return recovery.includes("error.message") ? undefined : FAILURES.get(code)?.help;
}
