import type { SettledQuestion, SettledRequest } from "../../schema/answered.ts";
import { hrefOf, opened } from "../app/route.ts";
import { ChangeList } from "../edit/change-list.tsx";
import { Age } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { wayWords } from "../ui/way-words.ts";
import { nameOf, type Phase, taskText } from "../ui/words.ts";
import { answerWords, toldText } from "./words.ts";

/** One settled question: who answered it and what, then the question, and what an edit changed. */
export function AnswerRow({ one }: { readonly one: SettledQuestion }) {
  const { delegation_id, target, delegator, settled_at, by, via, requests, votes = [], needed, told } = one;
  const who = votes.map((vote) => nameOf(vote.by)).join(", ");
  return (
    <li class="settled">
      <a
        class="settled-head"
        href={hrefOf(delegation_id)}
        data-row={delegation_id}
        aria-current={opened.value === delegation_id ? "true" : undefined}
      >
        <StateMark phase={phaseOf(one)} />
        <span class="settled-what">
          {by === null ? <b class="late">Nobody answered in time</b> : <b title={by}>{who || nameOf(by)}</b>}
          {by !== null && <Said> {answerWords(one)}</Said>}
          {by === null &&
            who !== "" &&
            needed !== undefined &&
            ` (${votes.length} of ${needed} approvals: ${who})`}
          {by === null && told && <span class="dim">. {toldText(told)}</span>}
        </span>
        <span class="row-age">
          <Age at={settled_at} ago />
        </span>
        <span class="settled-where">
          <span title={`${delegator} to ${target}`}>
            {nameOf(delegator)} → {target}
          </span>
          <Said>{taskText(one)}</Said>
          {via !== null && <span class="settled-way">{wayWords(via)}</span>}
        </span>
      </a>
      <ul class="settled-requests">
        {requests.map((request) => (
          <Request key={request.request_id} request={request} isOnly={requests.length === 1} />
        ))}
      </ul>
    </li>
  );
}

interface RequestProps {
  readonly request: SettledRequest;
  readonly isOnly: boolean;
}

function Request({ request, isOnly }: RequestProps) {
  const { question_preview, action, decision, answer_preview, redacted, changes } = request;
  const isDecided = decision !== undefined || redacted;
  return (
    <li>
      <p class="settled-question">
        <Said>{question_preview || action || "The question is not known"}</Said>
      </p>
      {!isOnly && isDecided && <p>{answerWords({ requests: [request] })}</p>}
      {answer_preview !== undefined && (
        <p class="settled-text">
          <Said>{answer_preview}</Said>
        </p>
      )}
      {changes && <ChangeList {...changes} />}
    </li>
  );
}

/** The shape of the row: a check, a dash for what was denied, a cross for what nobody answered. */
function phaseOf({ outcome, requests }: SettledQuestion): Phase {
  if (outcome === "expired") return "failed";
  return requests.every(({ decision }) => decision === "deny") ? "canceled" : "completed";
}
