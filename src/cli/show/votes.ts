/** The approvals that an open question has and needs, in words. */

import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import type { FailedEvent } from "../../schema/event.ts";
import { hasVoted, votesCount, votesText } from "../../schema/vote-text.ts";
import { votedAnswersText, votedOtherwise } from "../../schema/voted-answers.ts";
import { oneLine } from "./output.ts";

const MAX_TEXT = 1000;

/** `1 of 2 approvals: approver:ann`, with the changes that they approve. Undefined: the question needs one answer. */
export function votesLine(interrupt: Interrupt, principal?: string): string | undefined {
  const { votes } = interrupt;
  if (!votes || (votes.needed === 1 && votes.given.length === 0)) return undefined;
  const own = principal !== undefined && hasVoted(interrupt, principal) ? "; you approved" : "";
  const changes = votedChanges(interrupt);
  return oneLine(`${votesText(votes)}${changes ? `, with ${changes}` : ""}${own}`, MAX_TEXT);
}

/** What the approvals so far change; undefined: nothing. */
export function votedChanges(interrupt: Interrupt): string | undefined {
  const voted = votedOtherwise(interrupt);
  return voted && oneLine(votedAnswersText(interrupt, voted), MAX_TEXT);
}

/** The approvals of a question that expired without enough of them. Empty: it needed one answer, or nothing expired. */
export const missingText = ({ needed, votes = [] }: Pick<FailedEvent, "needed" | "votes">): string =>
  needed === undefined ? "" : votesText({ needed, given: votes });

/** Who has approved so far: `approver:ann, approver:bob`. */
export const votersText = ({ votes }: Pick<Interrupt, "votes">): string =>
  oneLine((votes?.given ?? []).map(({ by }) => by).join(", "));

/** Whether the answer to the question was a vote, so that the question is open still. */
export const wasVote = ({ interrupt }: Delegation, interruptId: string | null | undefined): boolean =>
  interrupt?.votes !== undefined && (interruptId == null || interrupt.id === interruptId);

/** The outcome of an answer: `approved dlg_…`, and if it was a vote, how many approvals there are. */
export function sentText(past: string, delegation: Delegation, interruptId?: string | null): string {
  const { id, interrupt } = delegation;
  if (!interrupt?.votes || !wasVote(delegation, interruptId)) return `${past} ${id}`;
  return `${past} ${id}, ${votesCount(interrupt.votes)}; the question stays open`;
}
