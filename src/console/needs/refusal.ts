/**
 * What the broker would refuse, told before the answer waits to be sent. The rules arrive with the parts that load later;
 * before that, or if they fail on the question, the broker decides.
 */
import type { Interrupt } from "../../schema/delegation.ts";
import type { AnswerBody } from "../../schema/interrupt.ts";
import type { Issue } from "../../schema/issues.ts";

type Request = Interrupt["requests"][number];
type Rules = (kind: Interrupt["kind"], request: Request, answer: AnswerBody) => readonly Issue[];

let rules: Rules = () => [];

export function setRules(loaded: Rules): void {
  rules = loaded;
}

export function refusalOf(...question: Parameters<Rules>): string | null {
  const [first] = issuesOf(...question);
  if (!first) return null;
  const path = first.path.replace(/^data\.?/, "");
  return `The answer does not fit the question: ${path === "" ? "" : `${path}: `}${first.reason}`;
}

function issuesOf(...question: Parameters<Rules>): readonly Issue[] {
  try {
    return rules(...question);
  } catch {
    return [];
  }
}
