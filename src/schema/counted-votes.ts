/** Whose approvals count, by an agent's `votes`. */
import { personOf } from "./vote-text.ts";
import type { Votes } from "./votes.ts";

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
