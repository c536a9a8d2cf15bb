/** The options that say whose approvals an agent needs. */
import type { Command } from "commander";
import type { AgentPatch } from "../../schema/agent.ts";
import { votesPatchSchema } from "../../schema/votes.ts";
import { wholeBetween } from "./arguments.ts";
import { duration } from "./duration.ts";

export interface VotesOptions {
  readonly votes?: number;
  readonly votesBy?: string[];
  readonly votesNotByDelegator?: boolean;
  readonly votesRemind?: number;
  readonly votesEscalate?: number;
  readonly votesEscalateTo?: string[];
}

/** What is left out of a change would stay. */
const ALL_RESET = Object.fromEntries(Object.keys(votesPatchSchema.shape).map((name) => [name, null]));

export const addVotesOptions = (command: Command): Command =>
  command
    .option(
      "--votes <n>",
      "how many people must approve what it asks for, 1 to 10 (operator only; --reset votes: the first answer counts)",
      wholeBetween(1, 10),
    )
    .option(
      "--votes-by <principals...>",
      "whose approval counts, for example approver:* (default: everybody who may answer; operator only)",
    )
    .option("--votes-not-by-delegator", "the delegator's own approval does not count (operator only)")
    .option(
      "--votes-remind <duration>",
      "while a question is open, notify those who have not approved again and again after this long (operator only)",
      duration,
    )
    .option(
      "--votes-escalate <duration>",
      "after this long, the approvals of --votes-escalate-to count, too, and they are notified (operator only)",
      duration,
    )
    .option(
      "--votes-escalate-to <principals...>",
      "whose approval counts, too, after --votes-escalate (operator only)",
    );

/** Undefined: none of them is given. */
export function votesOf(options: VotesOptions, base: AgentPatch["votes"]): AgentPatch["votes"] {
  const { votes, votesBy, votesNotByDelegator, votesRemind, votesEscalate, votesEscalateTo } = options;
  const given = {
    ...(votes !== undefined && { needed: votes }),
    ...(votesBy && { by: votesBy }),
    ...(votesNotByDelegator !== undefined && { not_by_delegator: votesNotByDelegator }),
    ...(votesRemind !== undefined && { remind_seconds: votesRemind }),
    ...(votesEscalate !== undefined && { escalate_seconds: votesEscalate }),
    ...(votesEscalateTo && { escalate_to: votesEscalateTo }),
  };
  if (Object.keys(given).length === 0) return undefined;
  return base === null ? { ...ALL_RESET, ...given } : { ...base, ...given };
}
