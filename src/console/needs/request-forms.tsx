import { signal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { Answer, Answers } from "../../client/answer.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { votedOtherwise } from "../../schema/voted-answers.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { equality } from "../inbox/equal.ts";
import { Problem } from "../ui/problem.tsx";
import { taskText } from "../ui/words.ts";
import { answerLater } from "./answers.ts";
import { ballotKey, votersText } from "./ballot.ts";
import type { Given } from "./given.ts";
import { isCounted, mine } from "./mine.ts";
import { failures, type Pending, unsent } from "./outcomes.ts";
import { refusalOf } from "./refusal.ts";
import { RequestForm } from "./request-form.tsx";
import { SAME, sameAgain } from "./same-again.ts";
import { sendAgain } from "./unsent.ts";
import { VotesLine } from "./votes-line.tsx";

/** In milliseconds: a reader who presses sooner has not seen what others approved in between. */
const UNSEEN_MS = 700;

interface Props {
  readonly listed: ListedDelegation;
  readonly interrupt: Interrupt;
}

/** How many equal questions are open: the rule answers none of them. */
function othersText({ id, target, interrupt }: ListedDelegation): string {
  const key = equality({ target, interrupt });
  const equals = mine.value.filter((one) => one.id !== id && equality(one) === key).length;
  return key === null || equals === 0 ? "" : `; ${equals} equal ${equals === 1 ? "one waits" : "ones wait"}`;
}

/** The forms of all requests of a question, which are answered together. */
export function RequestForms({ listed, interrupt }: Props) {
  const { requests } = interrupt;
  const key = ballotKey(interrupt);
  // What was chosen before others approved something else is chosen again.
  const given = useMemo(() => signal<Readonly<Record<string, Given>>>({}), [key]);
  const ballot = useRef({ key, changedAt: Number.NEGATIVE_INFINITY });
  if (ballot.current.key !== key) ballot.current = { key, changedAt: performance.now() };
  const task = taskText(listed);
  const counts = isCounted(listed);
  const check = (request: Interrupt["requests"][number], { answer }: Given, accept: () => void) => {
    const isUnseen =
      (typeof answer === "string" || answer.decision !== "deny") &&
      performance.now() - ballot.current.changedAt < UNSEEN_MS;
    const who = votersText(interrupt.votes?.given ?? []);
    const refusal = isUnseen
      ? `${who} has just approved something else. Look again, then press.`
      : refusalOf(interrupt.kind, request, answer);
    if (refusal === null) accept();
    else failures.set(interrupt.id, new Error(refusal));
  };
  const submit = (answer: Answer | Answers, done: string, then?: Pending["then"]) =>
    answerLater({ listed, interrupt, answer, done, then });
  const [only] = requests;
  // A rule is for what the agent proposes.
  const same =
    only?.action && votedOtherwise(interrupt) === undefined
      ? sameAgain(listed.target, interrupt, only.action)
      : null;
  const left = unsent.get(interrupt.id);
  const error = (
    <>
      <Problem error={failures.get(interrupt.id)} />
      {left && (
        // The form may show another answer by now.
        <button type="button" onClick={() => sendAgain(interrupt.id)}>
          Send again: {left.done}
        </button>
      )}
    </>
  );
  if (requests.length === 1 && only) {
    return (
      <>
        <VotesLine listed={listed} interrupt={interrupt} />
        <RequestForm
          task={task}
          isCounted={counts}
          request={only}
          interrupt={interrupt}
          onGive={(one) => check(only, one, () => submit(one.answer, one.done))}
          onApproveSame={
            same &&
            ((one) =>
              check(only, one, () => submit(one.answer, `${one.done}, ${SAME}${othersText(listed)}`, same)))
          }
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
      <VotesLine listed={listed} interrupt={interrupt} />
      {requests.map((request, index) => (
        <fieldset key={request.request_id}>
          <legend title={request.request_id}>
            {index + 1} of {requests.length}
          </legend>
          <RequestForm
            task={task}
            isCounted={counts}
            request={request}
            interrupt={interrupt}
            given={given.value[request.request_id]}
            onGive={(one) =>
              check(request, one, () => {
                failures.delete(interrupt.id);
                given.value = { ...given.value, [request.request_id]: one };
              })
            }
            onChange={() => {
              const { [request.request_id]: _, ...others } = given.value;
              given.value = others;
            }}
          />
        </fieldset>
      ))}
      {error}
      <button
        type="button"
        class="primary all-answers"
        disabled={missing > 0}
        onClick={() => submit({ answers }, "Answered")}
      >
        {missing > 0 ? `${missing} of ${requests.length} still to answer` : "Send the answers"}
      </button>
    </>
  );
}
