import type { Interrupt } from "../../schema/delegation.ts";
import { personOf } from "../../schema/vote-text.ts";
import type { VotedAnswers } from "../../schema/voted-answers.ts";
import { Age } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { moreText, neededText, votersText } from "./ballot.ts";
import { isApproved } from "./mine.ts";
import { optionText } from "./proposal.ts";

/** The questions that the reader approved in this page. */
const approved = new Set<string>();

/** How many people must approve, who has, and whether the reader's own approval counts still. */
export function VotesLine({ interrupt }: { readonly interrupt: Interrupt }) {
  const needed = neededText(interrupt);
  if (needed === "") return null;
  const { given = [] } = interrupt.votes ?? {};
  const isOwn = isApproved(interrupt);
  if (isOwn) approved.add(interrupt.id);
  const isVoid = !isOwn && approved.has(interrupt.id) && given.length > 0;
  return (
    <p class={isVoid ? "late" : "dim"} role="status">
      {isVoid && (
        <b>New: your approval is void, because {votersText(given.slice(0, 1))} approved something else. </b>
      )}
      {isOwn ? <b>You approved. {moreText(interrupt)}. </b> : `${needed}. `}
      {given.map(({ by, at }, index) => (
        <span key={by} title={by}>
          {index > 0 && ", "}
          {personOf(by)} approved <Age at={at} ago />
        </span>
      ))}
    </p>
  );
}

interface VotedProps {
  readonly voted: VotedAnswers[string] | undefined;
  readonly voters: string;
}

/** What others answered one request, where that is no approval of what it proposes. */
export function VotedOtherwise({ voted, voters }: VotedProps) {
  const { decision, text, data } = voted ?? {};
  const chosen = text ?? (data === undefined ? undefined : optionText(data));
  if (decision !== "deny" && chosen === undefined) return null;
  return (
    <p>
      <b>{voters}</b> {chosen === undefined ? "denied this" : "chose "}
      {chosen !== undefined && <Said>{`“${chosen}”`}</Said>}. Any other answer voids that.
    </p>
  );
}
