/** What a link may answer, and to which question it is bound. Limit: never a credential, a secret, or a change of arguments. */
import { createHash } from "node:crypto";
import { isDecidable } from "../../schema/answer-rules.ts";
import { choicesOf, offersDenial } from "../../schema/choices.ts";
import { type Decision, isDecision } from "../../schema/decision.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import type { LinkQuestion } from "../../schema/link.ts";
import type { AgentNotify } from "../../schema/notice.ts";
import { sortedJson } from "../../schema/sorted-json.ts";
import { votedOtherwise } from "../../schema/voted-answers.ts";

type Question = Pick<Interrupt, "id" | "kind" | "requests">;

/** How a link can answer the question. */
export function linkAnswerOf({ kind, requests }: Question): LinkQuestion["answer"] {
  if (kind !== "input" || requests.length === 0) return "sign_in";
  if (requests.every((one) => isDecidable(kind, one) && offersDenial(kind, one) && hasOnlyDecisions(one)))
    return "decision";
  const [only, second] = requests;
  // A schema asks for data, which may be secret.
  if (!only || second || only.schema !== undefined || only.action !== undefined) return "sign_in";
  return choicesOf(only).every((choice) => typeof choice === "string") ? "text" : "sign_in";
}

/** Whether others have approved an answer that the page of a link cannot give, so that an approval by the link would void theirs. */
export function hasOtherVotes({ kind, requests, votes }: Question & Pick<Interrupt, "votes">): boolean {
  const voted = votedOtherwise({ votes });
  if (voted === undefined) return false;
  // A page that takes a text can give the same one.
  return (
    linkAnswerOf({ id: "", kind, requests }) !== "text" ||
    Object.values(voted).some(({ data }) => data !== undefined)
  );
}

const hasOnlyDecisions = (request: Question["requests"][number]): boolean =>
  choicesOf(request).every(isDecision);

/** A hash of everything that is asked: a link is valid for exactly this. */
export const digestOf = ({ id, kind, requests }: Question): string =>
  createHash("sha256")
    .update(sortedJson([id, kind, requests]))
    .digest("base64url");

/** The decisions that a button may send, by the agent's setting. */
export const ONE_TAP: Readonly<Record<AgentNotify["one_tap"], readonly Decision[]>> = {
  none: [],
  deny: ["deny"],
  approve: ["approve", "deny"],
};
