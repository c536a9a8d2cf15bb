/** The approvals that an open question has so far, in words. */
import type { Interrupt } from "./delegation.ts";
import type { QuestionVotes } from "./votes.ts";

/** `caller:ana` and `approver:ana` are one person. */
export const personOf = (principal: string): string => principal.slice(principal.indexOf(":") + 1);

/** Whether one of the present votes is this person's; a voided vote is not among them. */
export const hasVoted = ({ votes }: Pick<Interrupt, "votes">, principal: string): boolean =>
  votes?.given.some(({ by }) => personOf(by) === personOf(principal)) ?? false;

/** `1 of 2 approvals`. */
export const votesCount = ({ given, needed }: QuestionVotes): string =>
  `${given.length} of ${needed} approval${needed === 1 ? "" : "s"}`;

/** `1 of 2 approvals: approver:ann`. May have control characters. */
export const votesText = (votes: QuestionVotes): string =>
  [votesCount(votes), votes.given.map(({ by }) => by).join(", ")].filter(Boolean).join(": ");
