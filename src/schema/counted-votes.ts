/** For which questions the approvals of several people count, and whose, by an agent's `votes`. */
import { isBudgetQuestion } from "./budget-question.ts";
import { offersApproval } from "./choices.ts";
import type { Interrupt } from "./delegation.ts";
import { personOf } from "./vote-text.ts";
import type { Votes } from "./votes.ts";

type Question = Pick<Interrupt, "kind" | "requests">;

/** Whether the question asks for an approval. If so, it shows how many it needs. */
export const asksForApproval = ({ kind, requests }: Question): boolean =>
  kind === "input" && requests.some(offersApproval);

/** Whether the agent's `votes` apply to the question; the broker's own question needs one answer. */
export const isVotedOn = (question: Question & Pick<Interrupt, "id">): boolean =>
  asksForApproval(question) && !isBudgetQuestion(question.id);

/** Whether the principal is the delegator, whose own approval does not count. */
export const isOwnWork = (
  { not_by_delegator }: Pick<Votes, "not_by_delegator">,
  principal: string,
  delegator: string,
): boolean => not_by_delegator && personOf(principal) === personOf(delegator);

/** When the approval of a principal that may answer begins to count, in ms after the question was asked; null: never. */
export function countsAfter(votes: Votes, principal: string, delegator: string): number | null {
  const { by, escalate_seconds, escalate_to } = votes;
  if (isOwnWork(votes, principal, delegator)) return null;
  const isIn = (patterns: readonly string[]) =>
    ["*", principal, `${principal.split(":", 1)[0]}:*`].some((one) => patterns.includes(one));
  if (isIn(by)) return 0;
  return escalate_seconds !== null && isIn(escalate_to) ? escalate_seconds * 1000 : null;
}
