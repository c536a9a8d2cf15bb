/** The approvals that a question has so far: what they are for, who gave them, and what the reader can add. */
import type { Answer, Answers } from "../../client/answer.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { personOf } from "../../schema/vote-text.ts";
import { votedOtherwise } from "../../schema/voted-answers.ts";
import type { Vote } from "../../schema/votes.ts";
import { count } from "../ui/words.ts";

type Voted = Pick<Interrupt, "votes">;

/** The same text for the same answers, so that nobody approves what somebody else has just put in their place. */
export const ballotKey = (interrupt: Voted): string => JSON.stringify(votedOtherwise(interrupt) ?? null);

/** Whether everything is denied, which voids nobody's approval. */
export function isDenial(answer: Answer | Answers): boolean {
  if (typeof answer === "string") return false;
  const all: readonly Answer[] = "answers" in answer ? Object.values(answer.answers) : [answer];
  return all.every((one) => typeof one === "object" && one.decision === "deny");
}

/** `ann and bob`: the people without the kinds of their principals, because each person counts once. */
export function votersText(votes: readonly Pick<Vote, "by">[]): string {
  const names = votes.map(({ by }) => personOf(by));
  const last = names.pop() ?? "";
  return names.length === 0 ? last : `${names.join(", ")} and ${last}`;
}

/** `1 more is needed`. */
export function moreText({ votes }: Voted): string {
  const left = Math.max(1, (votes?.needed ?? 1) - (votes?.given.length ?? 0));
  return `${left} more ${left === 1 ? "is" : "are"} needed`;
}

/** `Needs 2 approvals`; empty if one answer is enough. */
export const neededText = ({ votes }: Voted): string =>
  votes && (votes.needed > 1 || votes.given.length > 0) ? `Needs ${count(votes.needed, "approval")}` : "";
