/** Refuses answers that do not fit their question; schema/answer-rules.ts has the rules. */
import { answerIssues, howToFit } from "../../schema/answer-rules.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { AnswerInput } from "../../schema/interrupt.ts";
import { shownName } from "../../schema/text.ts";

const MAX_ISSUES = 50;

/** `isSingle`: the body is the answer; otherwise it has the answers under `answers`. */
export function requireFitting(
  id: string,
  { kind, requests }: Pick<Interrupt, "kind" | "requests">,
  answers: Iterable<readonly [request_id: string, answer: AnswerInput]>,
  isSingle: boolean,
): void {
  const inputs = new Map(answers);
  const misfits = requests.flatMap((request) => {
    const answer = inputs.get(request.request_id);
    const issues = answer === undefined ? [] : answerIssues(kind, request, answer);
    const under = isSingle ? "" : `answers.${shownName(request.request_id)}.`;
    return issues.map(({ path, reason }) => ({ request, issue: { path: under + path, reason } }));
  });
  const [first] = misfits;
  if (first === undefined) return;
  const issues = misfits.map(({ issue }) => issue);
  const { path, reason } = first.issue;
  throw new ErrandError("invalid_request", `The answer does not fit the question: ${path}: ${reason}`, {
    details: {
      issues: issues.slice(0, MAX_ISSUES),
      ...(issues.length > MAX_ISSUES && { issues_omitted: issues.length - MAX_ISSUES }),
    },
    recovery: howToFit(first.request),
    delegation_id: id,
    delegation_valid: true,
  });
}
