/** What people agree on where an agent needs the approvals of several: their answers without comments. */
import { textOf } from "./a2a.ts";
import { choicesOf } from "./answer-rules.ts";
import { isBudgetQuestion } from "./budget-question.ts";
import { changesOf } from "./changes.ts";
import type { Interrupt } from "./delegation.ts";
import type { AnswerInput } from "./interrupt.ts";
import { sortedJson } from "./sorted-json.ts";
import type { VotedAnswers } from "./voted-answers.ts";
import type { Vote } from "./votes.ts";

type Question = Pick<Interrupt, "kind" | "requests">;
type Request = Question["requests"][number];
/** What is said to each request of a question. */
type Inputs = readonly (readonly [request_id: string, input: AnswerInput])[];

export const offersApproval = (request: Request): boolean => choicesOf(request).includes("approve");

const approves = (request: Request, { decision }: AnswerInput): boolean =>
  decision === "approve" || (decision === undefined && offersApproval(request));

/** Whether the answer to at least one request is an approval. */
export function approveSomething(
  { id, kind, requests }: Question & Pick<Interrupt, "id">,
  inputs: Inputs,
): boolean {
  if (kind !== "input" || isBudgetQuestion(id)) return false;
  return inputs.some(([request_id, input]) => {
    const request = requests.find((one) => one.request_id === request_id);
    return request !== undefined && approves(request, input);
  });
}

/** The ballot of these answers, by request: approvals with the same one are for the same answer. */
export function ballotAnswers({ requests }: Pick<Question, "requests">, inputs: Inputs): VotedAnswers {
  const actions = new Map(requests.map(({ request_id, action }) => [request_id, action]));
  return Object.fromEntries(inputs.map(([id, input]) => [id, contentOf(input, actions.get(id))]));
}

/** A text beside a decision is a comment, and arguments as proposed are no edit: both are left out. */
function contentOf(
  { decision, text, message, data }: AnswerInput,
  action: Request["action"],
): VotedAnswers[string] {
  const isEdit =
    action === undefined || decision !== "approve" || changesOf(action.arguments, data).length > 0;
  const said = decision === undefined ? (text ?? (message && textOf(message))) : undefined;
  return {
    ...(decision !== undefined && { decision }),
    ...(said !== undefined && { text: said }),
    ...(data !== undefined && isEdit && { data }),
  };
}

/** The approvals so far that this answer would void, because they are for another one. */
export function voidedBy(interrupt: Interrupt, inputs: Inputs): readonly Vote[] {
  const { answers, given = [] } = interrupt.votes ?? {};
  if (answers === undefined || !approveSomething(interrupt, inputs)) return [];
  return sortedJson(answers) === sortedJson(ballotAnswers(interrupt, inputs)) ? [] : given;
}
