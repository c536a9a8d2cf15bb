/**
 * Finds what the broker would refuse in an answer, before the answer waits to be sent. The rules load with the later
 * parts of the page; until then, or if they throw, only the broker checks.
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
