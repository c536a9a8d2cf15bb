/** What people agree on where an agent needs the approvals of several: their answers without comments. */
import { textOf } from "./a2a.ts";
import { isBudgetQuestion } from "./budget-question.ts";
import { changesOf } from "./changes.ts";
import { choicesOf, offersApproval } from "./choices.ts";
import { isDecision } from "./decision.ts";
import type { Interrupt } from "./delegation.ts";
import type { AnswerInput } from "./interrupt.ts";
import { sortedJson } from "./sorted-json.ts";
import type { VotedAnswers } from "./voted-answers.ts";
import type { Vote } from "./votes.ts";

type Question = Pick<Interrupt, "kind" | "requests">;
type Request = Question["requests"][number];
/** What is said to each request of a question. */
type Inputs = readonly (readonly [request_id: string, input: AnswerInput])[];

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
  const asked = new Map(requests.map((request) => [request.request_id, request]));
  return Object.fromEntries(inputs.map(([id, input]) => [id, contentOf(input, asked.get(id) ?? {})]));
}

/**
 * Left out are comments (a text beside a decision, or beside data unless it is an option) and arguments as proposed, which are
 * no edit. An option is one answer, whether it is sent as text or as data.
 */
function contentOf(
  { decision, text, message, data }: AnswerInput,
  request: Partial<Request>,
): VotedAnswers[string] {
  if (decision !== undefined) {
    const { action } = request;
    const isEdit =
      action === undefined || decision !== "approve" || changesOf(action.arguments, data).length > 0;
    return { decision, ...(data !== undefined && isEdit && { data }) };
  }
  const said = text ?? (message && textOf(message));
  if (data === undefined) return said === undefined ? {} : { text: said };
  const options = choicesOf(request).filter((choice) => typeof choice === "string" && !isDecision(choice));
  const chosen = options.includes(said) ? said : undefined;
  const isOption = typeof data === "string" && options.includes(data);
  if (isOption && (chosen === undefined || chosen === data)) return { text: data };
  return { ...(chosen !== undefined && { text: chosen }), data };
}

/** The approvals so far that this answer would void, because they are for another one. */
export function voidedBy(interrupt: Interrupt, inputs: Inputs): readonly Vote[] {
  const { answers, given = [] } = interrupt.votes ?? {};
  if (answers === undefined || !approveSomething(interrupt, inputs)) return [];
  return sortedJson(answers) === sortedJson(ballotAnswers(interrupt, inputs)) ? [] : given;
}
