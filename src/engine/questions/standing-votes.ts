/** Answers by rules, and by approval in advance: with the answer, or with votes. */
import type { Command } from "../../lifecycle/command.ts";
import type { Result } from "../../lifecycle/outcome.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { approveSomething } from "../../schema/ballot.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import type { Votes } from "../../schema/votes.ts";
import type { Broker } from "../broker.ts";
import { answerCommand } from "./answer.ts";
import type { Audits } from "./audit-decisions.ts";
import { auditRules, type Given, requestOf } from "./standing-answers.ts";
import { ballotOf } from "./votes.ts";

/** The question, and what was read to answer it. */
export interface Standing {
  readonly id: string;
  readonly open: Pick<Interrupt, "id" | "kind" | "requests">;
  readonly votes: Votes | null;
  readonly rules_seen: readonly string[] | undefined;
}

/** The command that gives the answer. The script refuses it if the rules or the agent's `votes` have changed. */
export function givingCommand({ id, open, votes, rules_seen }: Standing, given: Given): Command {
  const { inputs, author, rules } = given;
  const ballot = approveSomething(open, inputs) ? ballotOf(votes, author.via, open, inputs) : undefined;
  const request = requestOf(open.id, inputs);
  const command = answerCommand({ id, request, author, open, inputs, ballot });
  return { ...command, params: { ...command.params, ...(rules && { rules_seen, rules }) } };
}

/**
 * Votes by rules, and by approval in advance, on a question that is open for people. A vote that the script refuses is left
 * out. Returns the last move that succeeded; null: none did.
 */
export async function castVotes(
  broker: Audits & Pick<Broker, "writer">,
  record: StoredDelegation,
  standing: Standing,
  givens: readonly Given[],
): Promise<Result | null> {
  let last: Result | null = null;
  for (const given of givens) {
    const result = await broker.writer.move(givingCommand(standing, given));
    if (result.outcome.kind !== "ok") continue;
    last = result;
    await auditRules(broker, record, given, standing.open, result.outcome.move === "vote");
    if (result.outcome.move !== "vote") break;
  }
  return last;
}
