import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Answer, Answers } from "../../client/answer.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { focusByKeyboard } from "../app/keys.ts";
import { hrefOf } from "../app/route.ts";
import { now } from "../data/clock.ts";
import type { Flight } from "../data/flight.ts";
import { Age, Left } from "../ui/age.tsx";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { nameOf, taskText } from "../ui/words.ts";
import { answerLater, failures, pending, undo } from "./answers.ts";
import type { Given } from "./given.ts";
import { RequestForm, SelectQuestion } from "./lazy-fields.ts";
import { refusalOf } from "./refusal.ts";

/** One question: who asks, for whom, what is proposed, and the answers. */
export function QuestionCard({ flight }: { readonly flight: Flight }) {
  const { id, target, delegator, interrupt } = flight;
  if (interrupt === null) return null;
  return (
    <article
      class="question"
      data-question={interrupt.id}
      data-row={id}
      tabIndex={-1}
      aria-label={`${target} asks`}
    >
      <header>
        <SelectQuestion interrupt={interrupt} />
        <StateMark phase="asks" />
        <span class="question-who">
          <b>{target}</b> asks, for <span title={delegator}>{nameOf(delegator)}</span>
        </span>
        <Age at={interrupt.raised_at} ago />
      </header>
      <a class="question-task" href={hrefOf(id)}>
        <Said>{taskText(flight)}</Said>
      </a>
      <TimeLeft interrupt={interrupt} />
      <AnswerForm flight={flight} interrupt={interrupt} />
    </article>
  );
}

/** The requests of a question and the answer to them; also used where a delegation is shown. */
export function AnswerForm({
  flight,
  interrupt,
}: {
  readonly flight: Flight;
  readonly interrupt: Interrupt;
}) {
  const waiting = pending.get(interrupt.id);
  const sentAt = waiting?.sentAt ?? null;
  const said = useRef<HTMLParagraphElement>(null);
  // The button that gave the answer is inert now, and Undo is gone when the answer is being sent.
  useEffect(() => {
    const { activeElement } = document;
    if (!said.current || (activeElement !== document.body && !activeElement?.closest("[inert]"))) return;
    focusByKeyboard(said.current.querySelector("button") ?? said.current.closest("[data-question]"));
  }, [waiting]);
  return (
    <>
      {waiting && (
        <p class="answered" role="status" ref={said}>
          {waiting.done}, {sentAt === null ? "sending …" : "not sent yet. "}
          {sentAt !== null && (
            <>
              <button type="button" onClick={() => undo(interrupt.id)}>
                Undo
              </button>
              <SecondsLeft until={sentAt} />
            </>
          )}
        </p>
      )}
      {/* The typed text stays, for an answer that is taken back or refused. */}
      <div class="answer" inert={waiting !== undefined}>
        <RequestForms flight={flight} interrupt={interrupt} />
      </div>
    </>
  );
}

/** The seconds in which an answer can still be taken back. Screen readers do not announce them. */
function SecondsLeft({ until }: { readonly until: number }) {
  const left = () => Math.max(1, Math.round((until - performance.now()) / 1000));
  const seconds = useSignal(left());
  useEffect(() => {
    const timer = setInterval(() => {
      seconds.value = left();
    }, 1000);
    return () => clearInterval(timer);
  }, [until]);
  return <small aria-hidden="true">{seconds} s left</small>;
}

function RequestForms({ flight, interrupt }: { readonly flight: Flight; readonly interrupt: Interrupt }) {
  const given = useSignal<Readonly<Record<string, Given>>>({});
  const { requests } = interrupt;
  const check = (request: Interrupt["requests"][number], { answer }: Given, accept: () => void) => {
    const refusal = refusalOf(interrupt.kind, request, answer);
    if (refusal === null) accept();
    else failures.set(interrupt.id, new Error(refusal));
  };
  const submit = (answer: Answer | Answers, done: string) => answerLater({ flight, interrupt, answer, done });
  const [only] = requests;
  const error = <Problem error={failures.get(interrupt.id)} />;
  if (requests.length === 1 && only) {
    return (
      <>
        <RequestForm
          request={only}
          kind={interrupt.kind}
          onGive={(one) => check(only, one, () => submit(one.answer, one.done))}
        />
        {error}
      </>
    );
  }
  const missing = requests.filter(({ request_id }) => given.value[request_id] === undefined).length;
  const answers = Object.fromEntries(
    Object.entries(given.value).map(([request, { answer }]) => [request, answer] as const),
  );
  return (
    <>
      {requests.map((request) => (
        <fieldset key={request.request_id}>
          <legend>
            <Said>{request.request_id}</Said>
          </legend>
          <RequestForm
            request={request}
            kind={interrupt.kind}
            given={given.value[request.request_id]}
            onGive={(one) =>
              check(request, one, () => {
                failures.delete(interrupt.id);
                given.value = { ...given.value, [request.request_id]: one };
              })
            }
          />
        </fieldset>
      ))}
      {error}
      <button
        type="button"
        class="primary"
        disabled={missing > 0}
        onClick={() => submit({ answers }, "Answered")}
      >
        {missing > 0 ? `${missing} of ${requests.length} still to answer` : "Send the answers"}
      </button>
    </>
  );
}

/** In the last fifth of its time, a question is urgent. */
const URGENT = 0.2;

export function TimeLeft({ interrupt }: { readonly interrupt: Interrupt }) {
  const ends = Date.parse(interrupt.expires_at);
  const whole = Math.max(1, ends - Date.parse(interrupt.raised_at));
  const left = Math.min(1, Math.max(0, (ends - now.value) / whole));
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
