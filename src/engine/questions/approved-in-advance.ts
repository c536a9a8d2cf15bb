/**
 * Selects the questions that the broker approves in the delegator's name, because the delegator approved them with the
 * task. Limit: it never approves an `auth` question, nor a part of a question.
 */
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { matchesAction } from "../../schema/action-pattern.ts";
import { answerIssues } from "../../schema/answer-rules.ts";
import { type AutoApprove, autoApproveSchema } from "../../schema/auto-approve.ts";
import { decisionSchema } from "../../schema/decision.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { parseJson } from "../../util/parse-json.ts";

/** The answer to every request of such a question. */
export const APPROVAL = { decision: "approve" } as const;

type Question = Pick<Interrupt, "kind" | "requests">;

/** What the delegator approved in advance; null if it is nothing, or cannot be read: then a person is asked. */
export function autoApproveOf(record: StoredDelegation): AutoApprove | null {
  return autoApproveSchema.safeParse(parseJson(record.get("auto_approve") ?? "")).data ?? null;
}

/** Whether the setting approves every request of the question. */
export function isApprovedInAdvance(setting: AutoApprove, { kind, requests }: Question): boolean {
  if (kind !== "input" || requests.length === 0) return false;
  return requests.every(
    (request) => isCovered(setting, request) && answerIssues(kind, request, APPROVAL).length === 0,
  );
}

function isCovered(setting: AutoApprove, request: Question["requests"][number]): boolean {
  const { action } = request;
  if (action === undefined) return setting === true && isApproveOrDeny(request);
  return setting === true || setting.actions.some((pattern) => matchesAction(pattern, action.name));
}

/** Whether the request, without an action, can only be approved or denied. */
export function isApproveOrDeny({
  action,
  options = [],
  schema,
}: Pick<Question["requests"][number], "action" | "options" | "schema">): boolean {
  const decisions: readonly unknown[] = decisionSchema.options;
  const isDecision = options.length === decisions.length && decisions.every((one) => options.includes(one));
  return action === undefined && isDecision && schema === undefined;
}
