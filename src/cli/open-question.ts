/** The open question of a delegation, and the errors when there is none. Shared by answer, approve and deny. */
import { budgetText } from "../client/budget-text.ts";
import type { Delegator } from "../client/delegator.ts";
import { ErrandApiError, localError } from "../client/errors.ts";
import { isBudgetQuestion } from "../schema/budget-question.ts";
import type { Decision } from "../schema/decision.ts";
import type { Delegation, Interrupt } from "../schema/delegation.ts";
import { CliError } from "./failure.ts";
import { howToAnswer, whyDecisionIsNotEnough } from "./show/questions.ts";

/** The help text of `--interrupt`. */
export const INTERRUPT = "answer only this question, int_… (default: the open one)";

/** Returns the open question. Throws if there is none, or if the decision cannot answer it. */
export function questionFor(decision: Decision, delegation: Delegation, hasData: boolean): Interrupt {
  const { id, interrupt } = delegation;
  if (interrupt === null) throw noOpenQuestion(delegation);
  const why = whyDecisionIsNotEnough(decision, interrupt, hasData);
  if (why === undefined) return interrupt;
  const { problem } = localError({
    code: "invalid_request",
    category: "PROTOCOL",
    detail: `${id} ${why}`,
    recovery: `Answer with ${howToAnswer(delegation)}.`,
  });
  throw new CliError({ ...problem, delegation_id: id });
}

export function noOpenQuestion(delegation: Delegation): CliError {
  const { id, state } = delegation;
  const { problem } = localError({
    code: "interrupt_not_open",
    category: "PROTOCOL",
    detail: `${id} has no open question: it is ${state}`,
    recovery: `Check the state with 'errand get ${id}'.`,
  });
  return new CliError(isExpired(delegation) ? { ...problem, ...questionExpired(id) } : problem);
}

/** The units of the amounts that the broker asks for; empty for a question of an agent. */
function amountsHint({ interrupt, budget }: Delegation): string {
  if (!budget || !isBudgetQuestion(interrupt?.id)) return "";
  const { currency, seconds } = budget.limit ?? {};
  const units = [
    ...(currency === undefined ? [] : [`a cost is in ${currency}`]),
    ...(seconds === undefined ? [] : ["a time is in seconds"]),
  ];
  return ` Used: ${[budgetText(budget), ...units].join("; ")}.`;
}

/** Whether the broker refused the answer because it does not fit the question. */
export const isMisfit = (error: unknown): error is ErrandApiError =>
  error instanceof ErrandApiError && error.status === 400 && error.code === "invalid_request";

const isExpired = ({ error }: Delegation): boolean => error?.code === "interrupt_expired";

const questionExpired = (id: string) => ({
  detail: `the question of ${id} has expired`,
  recovery: `Its delegator or the operator can delegate it again with 'errand redrive ${id}'; it then asks again.`,
});

/** Rethrows the broker's refusal of an answer, with a recovery that fits this delegation. */
export function explainRefusal(delegator: Delegator, id: string): (error: unknown) => Promise<never> {
  return async (error) => {
    if (!(error instanceof ErrandApiError)) throw error;
    const { problem } = error;
    if (Array.isArray(error.details?.request_ids)) {
      const recovery = `Answer all of them at once with 'errand answer ${id} --answers <path>'.`;
      throw new CliError({ ...problem, recovery }, { cause: error });
    }
    const misfits: boolean = isMisfit(error);
    if (misfits) {
      const delegation = await delegator.get(id).catch(() => undefined);
      if (!delegation?.interrupt) throw error;
      throw new CliError(
        { ...problem, recovery: `Answer with ${howToAnswer(delegation)}.${amountsHint(delegation)}` },
        { cause: error },
      );
    }
    if (error.code !== "interrupt_not_open" && error.code !== "already_finished") throw error;
    const expired = await delegator.get(id).then(isExpired, () => false);
    const recovery = `Check the state with 'errand get ${id}'.`;
    throw new CliError({ ...problem, recovery, ...(expired && questionExpired(id)) }, { cause: error });
  };
}
