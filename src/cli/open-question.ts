/** Shared by approve and deny of one delegation and of many: their options, and the question that they answer. */
import { localError } from "../client/errors.ts";
import type { Delegation, Interrupt } from "../schema/delegation.ts";
import { nothingAsked } from "./commands/answer.ts";
import type { GlobalOptions } from "./context.ts";
import { InOurWords } from "./failure.ts";
import { asksMoreThan, type Decision, howToAnswer } from "./show/questions.ts";

export const DONE = { approve: "approved", deny: "denied" } as const;

export interface DecideOptions extends GlobalOptions {
  readonly text?: string;
  readonly data?: unknown;
  readonly interrupt?: string;
  readonly all?: boolean;
  readonly target?: string;
  readonly delegator?: string;
  readonly context?: string;
  readonly yes?: boolean;
}

/** The open question; throws when there is none, or when a yes or no does not answer it. */
export function questionFor(decision: Decision, delegation: Delegation, hasData: boolean): Interrupt {
  const { id, interrupt } = delegation;
  if (interrupt === null) throw nothingAsked(delegation);
  const why = asksMoreThan(decision, interrupt, hasData);
  if (why === undefined) return interrupt;
  const { problem } = localError({
    code: "invalid_request",
    category: "PROTOCOL",
    detail: `${id} ${why}`,
    recovery: `Answer with ${howToAnswer(delegation)}.`,
  });
  throw new InOurWords({ ...problem, delegation_id: id });
}
