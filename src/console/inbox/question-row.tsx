import { textOf } from "../../schema/a2a.ts";
import { now } from "../data/clock.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { moreText, neededText } from "../needs/ballot.ts";
import { isApproved, isCounted } from "../needs/mine.ts";
import { pending } from "../needs/outcomes.ts";
import { readAction } from "../needs/proposal.ts";
import { isUrgent } from "../needs/question-card.tsx";
import type { Asked } from "../needs/rows.ts";
import { delegatorOf } from "../session/rights.ts";
import { Left } from "../ui/age.tsx";
import { askerOf, plainTitle, taskText } from "../ui/words.ts";
import { RiskMark } from "./risk.tsx";

/** In characters; the row shows one line of it. */
const MAX_TEXT = 200;

interface Props {
  readonly asked: Asked;
  /** How many equal questions the row stands for. */
  readonly equals: number;
  readonly isCurrent: boolean;
  /** What became of the question, if it is no longer open. */
  readonly outcome: string | undefined;
  readonly onSelect: () => void;
}

/** One question in the list: who asks, for whom, what, how risky it is, and the time left. */
export function QuestionRow({ asked: { id, listed }, equals, isCurrent, outcome, onSelect }: Props) {
  const { interrupt } = listed;
  if (interrupt === null) return null;
  const given = pending.get(id);
  const needed = neededText(interrupt);
  const text = `${isCounted(listed) ? "" : "Others must approve: "}${questionText(listed)}`;
  const vote = isApproved(interrupt) ? `You approved. ${moreText(interrupt)}` : text;
  return (
    <button
      type="button"
      class={outcome ? "ask-row over" : "ask-row"}
      data-row={listed.id}
      data-asks={id}
      aria-current={isCurrent ? "true" : undefined}
      onClick={onSelect}
      onFocus={onSelect}
    >
      <span class="ask-who">
        <b>{askerOf(listed)}</b> for {delegatorOf(listed)}
      </span>
      <RiskMark listed={listed} />
      {needed !== "" && (
        <span class="ask-count" title={needed}>
          {interrupt.votes?.given.length} of {interrupt.votes?.needed}
        </span>
      )}
      {equals > 1 && <span class="ask-count">× {equals}</span>}
      <span class={isUrgent(interrupt, now.value) ? "ask-left urgent" : "ask-left"}>
        {outcome ? "" : <Left until={interrupt.expires_at} />}
      </span>
      <span class="ask-text" dir="auto">
        {outcome ?? (given ? `${given.done}, not sent yet` : vote)}
      </span>
    </button>
  );
}

/** What is asked, or what would be done; without both, the task. */
export function questionText(listed: ListedDelegation): string {
  const [request] = listed.interrupt?.requests ?? [];
  const text = request ? textOf(request.message).trim() : "";
  return (plainTitle(text) || readAction(request)?.name || taskText(listed)).slice(0, MAX_TEXT);
}
