/** The line that a person types as the answer to one request of a question, and its meaning. */

import type { Answer } from "../../client/answer.ts";
import type { ErrandApiError } from "../../client/errors.ts";
import { answerIssues, isDecidable, offeredDecisions } from "../../schema/answer-rules.ts";
import { choicesOf } from "../../schema/choices.ts";
import { type Decision, decisionSchema, isDecision } from "../../schema/decision.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { parseExact } from "../../schema/exact-numbers.ts";
import { isObject } from "../../schema/json-schema/keywords.ts";
import { shownName } from "../../schema/text.ts";
import { distance } from "../../util/similar.ts";
import { issuesOf, oneLine } from "../show/output.ts";

export type Request = Interrupt["requests"][number];
export type Body = Exclude<Answer, string>;

/** The possible answers, as a part of the prompt. */
export function inputsOf(kind: Interrupt["kind"], request: Request): string {
  const { options = [], schema, action, edit } = request;
  const hidden = kind === "auth" ? "hidden " : "";
  const inputs: string[] = [];
  if (options.length > 0) inputs.push(`1 to ${options.length}`);
  else if (kind === "input" && isDecidable(kind, request)) inputs.push("'approve', 'deny'");
  if (edit === true) inputs.push(`other arguments, as ${hidden}JSON, to approve those`);
  if (schema !== undefined && action === undefined) inputs.push(`${hidden}JSON`);
  if (schema === undefined && action === undefined && options.length === 0) inputs.push(`${hidden}text`);
  return inputs.length === 0 ? "approve or deny" : inputs.join(", or ");
}

const YES_OR_NO = /^(?:y|yes|yep|ok|okay|approved|n|no|nope|denied)[.!]?$/i;

const YES = /^y(?:es)?[.!]?$/i;
const NO = /^no?[.!]?$/i;

/** Whether the request takes only one of its choices, and no free text. */
const isChoiceOnly = ({ options = [], schema, action }: Request): boolean =>
  action !== undefined || (options.length > 0 && schema === undefined);

/** The decision that `yes` or `no` stands for, if the request takes nothing but its choices. */
function decisionOf(line: string, request: Request): Decision | undefined {
  const { options = [] } = request;
  if (!isChoiceOnly(request) || options.includes(line)) return undefined;
  const decision = YES.test(line) ? "approve" : NO.test(line) ? "deny" : undefined;
  const isOffered = options.length === 0 || options.includes(decision);
  return isOffered ? decision : undefined;
}

const SHOWN = 40;

/** The hint for a line that is none of the choices, where only those are accepted. Undefined if the line may be sent. */
export function notAChoice(line: string, kind: Interrupt["kind"], request: Request): string | undefined {
  if (!isChoiceOnly(request)) return undefined;
  const body = toBody(line, request);
  // The broker says what is wrong with other arguments.
  if (isObject(body.data) || answerIssues(kind, request, body).length === 0) return undefined;
  const isDecided = choicesOf(request).every(isDecision);
  // A credential is not shown while it is typed.
  const shown = kind === "auth" ? "That" : `'${oneLine(line, SHOWN)}'`;
  const accepted = isDecided && request.edit !== true ? "approve or deny" : inputsOf(kind, request);
  return `${shown} is not ${isDecided ? "a decision" : "one of the options"}. Type ${accepted}.`;
}

/** The hint for a line that {@link isDoubtful}. */
export function decisionHint(line: string): string {
  const shown = oneLine(line, SHOWN);
  return `'${shown}' is not a decision. Type approve or deny; or '${shown}' again, to send it as text.`;
}

/** Whether the line is one of these words, or nearly. A word of four letters allows one mistake, another two. */
const isNearDecision = (line: string): boolean => {
  const word = line.toLowerCase();
  return (
    YES_OR_NO.test(line) || (word !== "" && (distance(word, "approve") <= 2 || distance(word, "deny") <= 1))
  );
};

/** Whether the line looks like a decision but is none, so that it is confirmed before it is sent as text. */
export function isDoubtful(line: string, kind: Interrupt["kind"], request: Request): boolean {
  const { options = [] } = request;
  const mayDecide =
    kind !== "auth" && isDecidable(kind, request) && offeredDecisions(kind, request).length > 0;
  if (!mayDecide || options.includes(line) || decisionOf(line, request)) return false;
  return !isDecision(line) && isNearDecision(line);
}

export function toBody(line: string, request: Request): Body {
  const { options = [], schema, action, edit } = request;
  const at = /^\d+$/.test(line) ? Number(line) - 1 : -1;
  const chosen = at in options ? options[at] : line;
  const decision = decisionOf(line, request) ?? decisionSchema.safeParse(chosen).data;
  if (decision) return { decision };
  if (typeof chosen !== "string") return { data: chosen };
  if (chosen !== line || options.includes(line)) return { text: chosen };
  if (action) {
    const data = edit === true ? parsed(line) : undefined;
    return isObject(data) ? { decision: "approve", data } : { text: line };
  }
  if (schema === undefined) return { text: line };
  const data = parsed(line);
  return data === undefined ? { data: line } : { data };
}

/** Undefined for a line that is not JSON, or has a number that loses digits. */
function parsed(line: string): unknown {
  try {
    return parseExact(line);
  } catch {
    return undefined;
  }
}

/** The requests whose answers were refused. */
export function misfits(requests: readonly Request[], error: ErrandApiError): readonly Request[] {
  const paths = issuesOf(error).map(({ path }) => path);
  const found = requests.filter(({ request_id }) => {
    const under = oneLine(`answers.${shownName(request_id)}`);
    return paths.some((path) => path === under || path.startsWith(`${under}.`));
  });
  return found.length > 0 ? found : requests;
}

const MAX_REASONS = 5;
/** Why the broker refused the answers, one line each. */
export const refusalReasons = (error: ErrandApiError): string[] =>
  issuesOf(error)
    .slice(0, MAX_REASONS)
    .map(({ path, reason }) => `not accepted: ${path}: ${reason}`);
