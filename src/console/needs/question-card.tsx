import type { ComponentChildren } from "preact";
import type { Interrupt } from "../../schema/delegation.ts";
import { hrefOf } from "../app/route.ts";
import { now } from "../data/clock.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { delegatorOf } from "../session/rights.ts";
import { Age, Left } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { askerOf, taskText } from "../ui/words.ts";
import { GivenAnswer, RequestForms, SelectQuestion } from "./lazy-fields.tsx";
import { type Note, pending } from "./outcomes.ts";

interface CardProps {
  readonly listed: ListedDelegation;
  /** The outcome, if the question is no longer open and the card keeps its place. */
  readonly note?: Note | undefined;
  /** Beside who asks. */
  readonly mark?: ComponentChildren;
}

/** One question: who asks, for whom, what is proposed, and the answers. */
export function QuestionCard({ listed, note, mark }: CardProps) {
  const { id, delegator, interrupt } = listed;
  if (interrupt === null) return null;
  // "Asks for" would name whom it asks.
  const task = taskText(listed);
  const whom = delegatorOf(listed);
  const asker = askerOf(listed);
  return (
    <article
      class={note ? "question over" : "question"}
      data-question={interrupt.id}
      data-row={id}
      tabIndex={-1}
      aria-label={`${asker}, working for ${whom}, asks: ${task}`}
    >
      <header>
        {/* Several are selected where several are shown. */}
        {mark === undefined && <SelectQuestion interrupt={interrupt} task={task} />}
        <StateMark phase="asks" />
        <span class="question-who">
          <b>{asker}</b> for <span title={delegator}>{whom}</span>
        </span>
        {mark}
        <Age at={interrupt.raised_at} ago />
      </header>
      <a class="question-task" href={hrefOf(id)}>
        <Said>{task}</Said>
      </a>
      <TimeLeft interrupt={interrupt} />
      <AnswerForm listed={listed} interrupt={interrupt} note={note} />
    </article>
  );
}

interface FormProps {
  readonly listed: ListedDelegation;
  readonly interrupt: Interrupt;
  /** The outcome, if it is no longer open. */
  readonly note?: Note | undefined;
}

/** The requests of a question and the answer to them; also used where a delegation is shown. */
export function AnswerForm(props: FormProps) {
  const { interrupt, note } = props;
  return (
    <div class="in-place-of">
      {/* The typed text stays, for an answer that is taken back or refused. */}
      <div class="answer" inert={note !== undefined || pending.get(interrupt.id) !== undefined}>
        <RequestForms {...props} />
      </div>
      <GivenAnswer interrupt={interrupt} note={note} />
    </div>
  );
}

/** In the last fifth of its time, a question is urgent. */
const URGENT = 0.2;

/** The share of its time that is left at an instant, in milliseconds since 1970. */
function shareLeft({ expires_at, raised_at }: Interrupt, at: number): number {
  const ends = Date.parse(expires_at);
  const whole = Math.max(1, ends - Date.parse(raised_at));
  return Math.min(1, Math.max(0, (ends - at) / whole));
}

export const isUrgent = (interrupt: Interrupt, at: number): boolean => shareLeft(interrupt, at) < URGENT;

export function TimeLeft({ interrupt }: { readonly interrupt: Interrupt }) {
  const left = shareLeft(interrupt, now.value);
  return (
    <div
      class={left < URGENT ? "time-left urgent" : "time-left"}
      title="The time left to answer; after it, the question expires."
    >
      <span class="bar" aria-hidden="true">
        <span style={{ clipPath: `inset(0 0 0 ${((1 - left) * 100).toFixed(1)}%)` }} />
      </span>
      <span>
        <Left until={interrupt.expires_at} /> to answer
      </span>
    </div>
  );
}
