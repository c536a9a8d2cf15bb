import { effect } from "@preact/signals";
import { isDeniable } from "../../schema/choices.ts";
import { isOwnWork } from "../../schema/counted-votes.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { withoutSecrets } from "../../schema/secrets.ts";
import { personOf } from "../../schema/vote-text.ts";
import type { VotedAnswers } from "../../schema/voted-answers.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { session } from "../session/session.ts";
import { Age, Left } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { moreText, neededText, votersText } from "./ballot.ts";
import { countsFrom, isApproved, isCounted, votesOf } from "./mine.ts";
import { optionText } from "./proposal.ts";

/** The questions that the reader approved in this page. */
const approved = new Set<string>();
effect(() => {
  void session.value;
  approved.clear();
});

interface LineProps {
  readonly listed: ListedDelegation;
  readonly interrupt: Interrupt;
}

/** How many people must approve, who has, and whether the reader's own approval counts, or counts still. */
export function VotesLine({ listed, interrupt }: LineProps) {
  const needed = neededText(interrupt);
  const isOnlyDeny = !isCounted(listed);
  if (needed === "" && !isOnlyDeny) return null;
  const { given = [] } = interrupt.votes ?? {};
  const isOwn = isApproved(interrupt);
  if (isOwn) approved.add(interrupt.id);
  const isVoid = !isOwn && approved.has(interrupt.id) && given.length > 0;
  return (
    <p class={isVoid ? "late" : "dim"} role="status">
      {isVoid && (
        <b>New: your approval is void, because {votersText(given.slice(0, 1))} approved something else. </b>
      )}
      {isOnlyDeny && (
        <b>
          {isDeniable(interrupt) ? "Only Deny is yours" : "Not yours to answer"}: <WhyNot listed={listed} />.{" "}
        </b>
      )}
      {isOwn && !isOnlyDeny ? <b>You approved. {moreText(interrupt)}. </b> : needed && `${needed}. `}
      {given.map(({ by, at }, index) => (
        <span key={by} title={by}>
          {index > 0 && ", "}
          {personOf(by)} approved <Age at={at} ago />
        </span>
      ))}
    </p>
  );
}

/** Of the people whose approvals count. */
const NAMED = 3;

/** Why the reader's approval does not count. */
function WhyNot({ listed }: { readonly listed: ListedDelegation }) {
  const { target, delegator } = listed;
  const from = countsFrom(listed);
  const votes = votesOf(target);
  if (from) {
    return (
      <>
        your approval counts in <Left until={new Date(from).toISOString()} isBare />
      </>
    );
  }
  if (!votes || isOwnWork(votes, session.value?.principal ?? "", delegator))
    return "somebody else than the delegator must approve it";
  const more = votes.by.length - NAMED;
  return `it needs the approval of ${votes.by.slice(0, NAMED).join(", ")}${more > 0 ? ` or ${more} more` : ""}`;
}

interface VotedProps {
  readonly voted: VotedAnswers[string] | undefined;
  readonly voters: string;
  /** Of the request: it says what of the answer is secret. */
  readonly schema: unknown;
}

/** What others answered one request, where that is no approval of what it proposes. */
export function VotedOtherwise({ voted, voters, schema }: VotedProps) {
  const { decision, text, data } = voted ?? {};
  const chosen = text ?? (data === undefined ? undefined : optionText(withoutSecrets(data, schema)));
  if (decision !== "deny" && chosen === undefined) return null;
  return (
    <p>
      <b>{voters}</b> {chosen === undefined ? "denied this" : "chose "}
      {chosen !== undefined && <Said>{`“${chosen}”`}</Said>}. Any other answer voids that.
    </p>
  );
}
