/**
 * The rules by which an answer fits a question.
 *
 * A question's choices are its `options`; an `action` without options has approve and deny. The choices `approve` and
 * `deny` are chosen by `decision` only, another string by `text` or `data`, any other value by `data`. Beside a decision
 * or data, text is a comment.
 *
 * | the question has | an answer has |
 * | --- | --- |
 * | none of these | anything |
 * | `options` | one of the options |
 * | `schema` | `data` that fits it |
 * | `options` and `schema` | one of the options, or `data` that fits the schema; or both |
 * | `action` | a choice; with approve and `edit`, `data` may replace the arguments, and then fits the schema if there is one |
 *
 * `data` that has no meaning by these rules is refused. A decision alone always answers an `auth` question, because the
 * credential may be given elsewhere. The agent gets the answer unchanged; nothing is derived from it.
 */
import { textOf } from "./a2a.ts";
import { choicesOf } from "./choices.ts";
import { type Decision, decisionSchema, isDecision } from "./decision.ts";
import type { Interrupt } from "./delegation.ts";
import type { AnswerInput } from "./interrupt.ts";
import type { Issue } from "./issues.ts";
import { isObject } from "./json-schema/keywords.ts";
import { validate } from "./json-schema/validate.ts";
import { MISSING, mustBeOneOf, shownValues } from "./wording.ts";

type Kind = Interrupt["kind"];
type Request = Pick<Interrupt["requests"][number], "options" | "schema" | "action" | "edit">;

const DECISIONS = decisionSchema.options;

/** The decisions that may be part of an answer to the request. */
export function offeredDecisions(kind: Kind, request: Request): readonly Decision[] {
  const choices = choicesOf(request);
  if (kind === "auth" || choices.length === 0) return DECISIONS;
  return DECISIONS.filter((decision) => choices.includes(decision));
}

/** Whether a decision alone answers the request. */
export function isDecidable(kind: Kind, request: Request): boolean {
  return kind === "auth" || choicesOf(request).length > 0 || request.schema === undefined;
}

/** The issues of an answer, with paths within it; none if it fits the request. */
export function answerIssues(kind: Kind, request: Request, answer: AnswerInput): readonly Issue[] {
  const issues = [...decisionIssues(kind, request, answer), ...dataIssues(request, answer)];
  return issues.length > 0 ? issues : choiceIssues(kind, request, answer);
}

const MAX_SCHEMA = 2_000;
/** Not of a long one, which the question has. */
function shownSchema(schema: unknown): string {
  const text = JSON.stringify(schema) ?? "";
  return text === "" || text.length > MAX_SCHEMA ? "" : `, ${text}`;
}

/** The recovery for an answer that does not fit. */
export function howToFit({ options = [], schema, action, edit }: Request): string {
  if (action !== undefined) {
    const others = options.length > DECISIONS.length ? ", or another option as text" : "";
    const editing = edit === true ? " With approve, data may replace the arguments of the action." : "";
    return `Send the decision approve or deny${others}; a text beside it is a comment.${editing}`;
  }
  const data = `data that fits the schema of the question${shownSchema(schema)}`;
  if (options.length === 0) return `Send ${data}.`;
  const or = schema === undefined ? "" : `, or ${data}`;
  return `Send one of the options${or}: approve and deny as decision, another string as text, any other value as data.`;
}

function decisionIssues(kind: Kind, request: Request, { decision }: AnswerInput): Issue[] {
  if (decision === undefined || offeredDecisions(kind, request).includes(decision)) return [];
  return [{ path: "decision", reason: `the options are ${shownValues(choicesOf(request))}` }];
}

function dataIssues(request: Request, { decision, data, message }: AnswerInput): readonly Issue[] {
  const { schema, action, edit } = request;
  const choices = choicesOf(request);
  if (choices.length === 0 && schema === undefined) return [];
  // An agent could take the data of a part for the data of the answer.
  const at = message?.parts.findIndex((part) => "data" in part) ?? -1;
  if (at >= 0)
    return [{ path: `message.parts.${at}.data`, reason: "only allowed as the data of the answer" }];
  if (data === undefined) return [];
  if (action !== undefined) {
    if (edit !== true) return [{ path: "data", reason: "the arguments of this action cannot be edited" }];
    if (decision !== "approve")
      return [{ path: "data", reason: "replaces the arguments of the action, so it requires approve" }];
    if (!isObject(data)) return [{ path: "data", reason: "must be an object: the arguments of the action" }];
  }
  if (action === undefined && isChoice(choices, data)) {
    const isSecond = decision !== undefined && schema === undefined;
    return isSecond
      ? [{ path: "data", reason: "not allowed beside a decision: that is already the choice" }]
      : [];
  }
  if (schema !== undefined) return within("data", validate(schema, data).issues);
  return action === undefined ? [{ path: "data", reason: mustBeOneOf(choices) }] : [];
}

function choiceIssues(kind: Kind, request: Request, answer: AnswerInput): readonly Issue[] {
  const { decision, data, message } = answer;
  const choices = choicesOf(request);
  const isDecided = decision !== undefined && isDecidable(kind, request);
  if (isDecided || data !== undefined) return [];
  if (choices.length === 0) {
    if (request.schema === undefined) return [];
    return [{ path: "data", reason: `${MISSING}: the question asks for data that fits its schema` }];
  }
  const text = message ? textOf(message) : answer.text;
  if (text !== undefined && !isDecision(text) && choices.includes(text)) return [];
  const isOnlyDecided = choices.every(isDecision) || (isDecision(text) && choices.includes(text));
  if (isOnlyDecided)
    return [{ path: "decision", reason: `${MISSING}: must be ${choices.filter(isDecision).join(" or ")}` }];
  return [{ path: message ? "message" : "text", reason: mustBeOneOf(choices) }];
}

const isChoice = (choices: readonly unknown[], data: unknown): boolean =>
  validate({ enum: choices.filter((choice) => !isDecision(choice)) }, data).issues.length === 0;

const within = (path: string, issues: readonly Issue[]): Issue[] =>
  issues.map((issue) => ({ ...issue, path: issue.path === "" ? path : `${path}.${issue.path}` }));
