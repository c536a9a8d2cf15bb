import { useSignal } from "@preact/signals";
import type { Answer, Answers } from "../../client/answer.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { Problem } from "../ui/problem.tsx";
import { taskText } from "../ui/words.ts";
import { answerLater } from "./answers.ts";
import type { Given } from "./given.ts";
import { failures, type Pending, unsent } from "./outcomes.ts";
import { refusalOf } from "./refusal.ts";
import { RequestForm } from "./request-form.tsx";
import { SAME, sameAgain } from "./same-again.ts";
import { sendAgain } from "./unsent.ts";

interface Props {
  readonly listed: ListedDelegation;
  readonly interrupt: Interrupt;
}

/** The forms of all requests of a question, which are answered together. */
export function RequestForms({ listed, interrupt }: Props) {
  const given = useSignal<Readonly<Record<string, Given>>>({});
  const { requests } = interrupt;
  const task = taskText(listed);
  const check = (request: Interrupt["requests"][number], { answer }: Given, accept: () => void) => {
    const refusal = refusalOf(interrupt.kind, request, answer);
    if (refusal === null) accept();
    else failures.set(interrupt.id, new Error(refusal));
  };
  const submit = (answer: Answer | Answers, done: string, then?: Pending["then"]) =>
    answerLater({ listed, interrupt, answer, done, then });
  const [only] = requests;
  const same = only?.action && sameAgain(listed.target, interrupt, only.action);
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
        <RequestForm
          question={interrupt.id}
          task={task}
          request={only}
          kind={interrupt.kind}
          onGive={(one) => check(only, one, () => submit(one.answer, one.done))}
          onApproveSame={
            same && ((one) => check(only, one, () => submit(one.answer, `${one.done}, ${SAME}`, same)))
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
      {requests.map((request, index) => (
        <fieldset key={request.request_id}>
          <legend title={request.request_id}>
            {index + 1} of {requests.length}
          </legend>
          <RequestForm
            question={interrupt.id}
            task={task}
            request={request}
            kind={interrupt.kind}
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
        class="primary"
        disabled={missing > 0}
        onClick={() => submit({ answers }, "Answered")}
      >
        {missing > 0 ? `${missing} of ${requests.length} still to answer` : "Send the answers"}
      </button>
    </>
  );
}
