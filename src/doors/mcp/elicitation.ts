/**
 * A delegation's questions as MCP forms (elicitation), and the filled-in forms as answers. Forms are flat: what does not
 * fit into one, such as nested data or the arguments of an action, is a text field for JSON. Limit: a form never asks for
 * a credential, only whether it was given.
 */

import { type InputRequests, inputRequired, inputResponse, isSpecType } from "@modelcontextprotocol/server";
import { preview } from "../../engine/delegations/preview.ts";
import { textOf } from "../../schema/a2a.ts";
import { isDecidable, offeredDecisions } from "../../schema/answer-rules.ts";
import { isDecision } from "../../schema/decision.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { InexactNumberError, parseExact } from "../../schema/exact-numbers.ts";
import type { AnswerInput } from "../../schema/interrupt.ts";
import { withoutSecrets } from "../../schema/secrets.ts";
import { votesText } from "../../schema/vote-text.ts";

type Question = Interrupt["requests"][number];
type Form = Parameters<typeof inputRequired.elicit>[0];

const MESSAGE_BYTES = 4_096;
const CUT = "\n[cut: check_task_status with full: true shows all of it]";
const DECISION = {
  type: "string",
  enum: ["approve", "deny"],
  title: "Decision",
  description: "For a yes-or-no question",
} as const;
const NO_SECRETS =
  "Do not type secrets here. Give the credential where the agent says, then approve; or deny.";
const JSON_FIELD = { type: "string", title: "Answer as JSON" } as const;
const ARGUMENTS_FIELD = {
  type: "string",
  title: "Other arguments, as JSON",
  description: "Replaces the proposed arguments if you approve; leave empty to keep them",
} as const;
const COMMENT_FIELD = { type: "string", title: "Comment" } as const;

/** Unique within the delegation: an interrupt's id is never reused, nor is a request_id within it. */
const inputKey = (interrupt: Interrupt, { request_id }: Question): string => `${interrupt.id}:${request_id}`;

/** The options by their names in a form. */
const optionsOf = ({ options = [] }: Question): ReadonlyMap<string, unknown> =>
  new Map(options.map((option) => [typeof option === "string" ? option : JSON.stringify(option), option]));

/** The keywords of a field that clients know; the broker checks the answer by the others, too. */
const FIELD_KEYWORDS: ReadonlySet<string> = new Set([
  ...[
    "type",
    "title",
    "description",
    "default",
    "enum",
    "enumNames",
    "oneOf",
    "items",
    "minItems",
    "maxItems",
  ],
  ...["minLength", "maxLength", "pattern", "format", "minimum", "maximum"],
]);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

function formSchema(schema: unknown): unknown {
  if (!isObject(schema) || !isObject(schema.properties)) return schema;
  const fields = Object.entries(schema.properties).map(([name, field]): [string, unknown] => [
    name,
    isObject(field)
      ? Object.fromEntries(Object.entries(field).filter(([keyword]) => FIELD_KEYWORDS.has(keyword)))
      : field,
  ]);
  return { ...schema, properties: Object.fromEntries(fields) };
}

/** A form with the agent's own schema, if MCP allows it. */
function schemaForm({ schema }: Question, message: string): Form | undefined {
  const form: unknown = { mode: "form", message, requestedSchema: formSchema(schema) };
  return schema !== undefined && isSpecType.ElicitRequestFormParams(form) ? form : undefined;
}

/** The text of the question and its action. `schema` is one that the form does not show. */
function messageOf({ message, action }: Question, schema?: unknown): string {
  const text = [
    textOf(message),
    ...(action ? [`Action: ${action.name} ${JSON.stringify(action.arguments, undefined, 2)}`] : []),
    ...(schema === undefined ? [] : [`JSON Schema: ${JSON.stringify(schema)}`]),
  ].join("\n\n");
  const shown = preview(text, MESSAGE_BYTES);
  return shown === text ? text : shown + CUT;
}

function form(message: string, properties: FormProperties, required: string[] = []): Form {
  return {
    mode: "form",
    message,
    requestedSchema: { type: "object", properties, ...(required.length > 0 && { required }) },
  };
}
type FormProperties = Extract<NonNullable<Form["requestedSchema"]>, { type: "object" }>["properties"];

function formOf(kind: Interrupt["kind"], question: Question): Form {
  const message = messageOf(question);
  const decision = { ...DECISION, enum: [...DECISION.enum] };
  if (kind === "auth") return form(`${message}\n${NO_SECRETS}`, { decision }, ["decision"]);
  const { action, edit, schema } = question;
  const options = [...optionsOf(question).keys()];
  if (action) {
    const choice = { ...decision, enum: options.length > 0 ? options : decision.enum };
    if (edit !== true) return form(message, { decision: choice, comment: COMMENT_FIELD }, ["decision"]);
    const properties = { decision: choice, arguments: ARGUMENTS_FIELD, comment: COMMENT_FIELD };
    return form(messageOf(question, schema), properties, ["decision"]);
  }
  const own = schemaForm(question, message);
  if (own) return own;
  if (options.length > 0) {
    const answer = { type: "string" as const, enum: options, title: "Answer" };
    return form(message, { answer }, ["answer"]);
  }
  if (schema !== undefined) return form(messageOf(question, schema), { json: JSON_FIELD }, ["json"]);
  return form(message, { answer: { type: "string", title: "Answer" }, decision });
}

/** How many approvals it has, and what they are for if that is not what the agent proposes. */
function votesOf(interrupt: Interrupt, { request_id, schema }: Question): string | undefined {
  const { votes } = interrupt;
  if (!votes) return undefined;
  const data = votes.answers?.[request_id]?.data;
  const others =
    data === undefined
      ? ""
      : ` They approved these arguments: ${JSON.stringify(withoutSecrets(data, schema))} To agree, give the same. To approve without them voids their approvals.`;
  return preview(`${votesText(votes)}.${others}`, MESSAGE_BYTES);
}

/** A form for each open request, by key; none when no question is open. `refusal`: why earlier answers do not fit. */
export function toInputRequests(
  { interrupt }: Pick<Delegation, "interrupt">,
  answered: ReadonlySet<string> = new Set(),
  refusal?: string,
): InputRequests {
  if (interrupt === null) return {};
  const open = interrupt.requests.filter(({ request_id }) => !answered.has(request_id));
  return Object.fromEntries(
    open.map((question) => {
      const asked = formOf(interrupt.kind, question);
      const message = [refusal, votesOf(interrupt, question), asked.message].filter(Boolean).join("\n\n");
      return [inputKey(interrupt, question), inputRequired.elicit({ ...asked, message })];
    }),
  );
}

const isFilled = (text: unknown): text is string => typeof text === "string" && text !== "";

function parsed(text: string, field: string): unknown {
  try {
    return parseExact(text);
  } catch (error) {
    const reason = error instanceof InexactNumberError ? error.message : "is not JSON";
    throw new ErrandError("invalid_request", `${field}: ${reason}`, {
      details: { issues: [{ path: field, reason }] },
      recovery: "Fill in the form again, with JSON in this field.",
    });
  }
}

/** The answer that chooses an option by its name in the form. */
function toChoice(question: Question, name: unknown): AnswerInput | undefined {
  if (isDecision(name)) return { decision: name };
  const options = optionsOf(question);
  if (typeof name !== "string" || !options.has(name)) return undefined;
  const option = options.get(name);
  return typeof option === "string" ? { text: option } : { data: option };
}

/** Undefined for an empty form, which is no approval. */
function toAnswer(
  kind: Interrupt["kind"],
  question: Question,
  content: Record<string, unknown>,
): AnswerInput | undefined {
  const { decision, answer, json } = content;
  const decided = isDecision(decision) ? decision : undefined;
  if (kind === "auth") return decided && { decision: decided };
  if (question.action) return toActionAnswer(question, content);
  if (schemaForm(question, "") !== undefined) {
    const texts = Object.values(content);
    const [only] = texts;
    return { data: content, ...(texts.length === 1 && isFilled(only) && { text: only }) };
  }
  if (optionsOf(question).size > 0) return isFilled(answer) ? toChoice(question, answer) : undefined;
  if (question.schema !== undefined) return isFilled(json) ? { data: parsed(json, "json") } : undefined;
  if (isFilled(answer)) return { text: answer, ...(decided && { decision: decided }) };
  return decided && { decision: decided };
}

/** Only a decision takes a comment: any other choice is the text of the answer itself. */
function toActionAnswer(question: Question, content: Record<string, unknown>): AnswerInput | undefined {
  const { decision, comment, arguments: edited } = content;
  const choice = toChoice(question, decision);
  if (choice?.decision === undefined) return choice;
  const data = isFilled(edited) && choice.decision === "approve" ? parsed(edited, "arguments") : undefined;
  return { ...choice, ...(isFilled(comment) && { text: comment }), ...(data !== undefined && { data }) };
}

function responseTo(
  interrupt: Interrupt,
  question: Question,
  responses: Readonly<Record<string, unknown>> | undefined,
) {
  const key = inputKey(interrupt, question);
  return inputResponse({ [key]: responses?.[key] }, key);
}

/** A declined form is a denial if the question offers that. */
const isDenial = (kind: Interrupt["kind"], question: Question): boolean =>
  offeredDecisions(kind, question).includes("deny") && isDecidable(kind, question);

/** Whether the user left a question open: dismissed its form, or declined it where a denial is no answer. */
export const isDismissed = (
  { interrupt }: Pick<Delegation, "interrupt">,
  responses: Readonly<Record<string, unknown>> | undefined,
): boolean =>
  interrupt?.requests.some((question) => {
    const response = responseTo(interrupt, question, responses);
    return (
      response.kind === "elicit" &&
      (response.action === "cancel" || (response.action === "decline" && !isDenial(interrupt.kind, question)))
    );
  }) === true;

/** Answers by request_id. Ignores responses to other requests, and forms without an answer: their questions stay open. */
export function toAnswers(
  { interrupt }: Pick<Delegation, "interrupt">,
  responses: Readonly<Record<string, unknown>> | undefined,
): Record<string, AnswerInput> {
  const answers: Record<string, AnswerInput> = {};
  if (interrupt === null) return answers;
  for (const question of interrupt.requests) {
    const response = responseTo(interrupt, question, responses);
    if (response.kind !== "elicit" || response.action === "cancel") continue;
    const denial = isDenial(interrupt.kind, question) ? ({ decision: "deny" } as const) : undefined;
    const answer: AnswerInput | undefined =
      response.action === "decline" ? denial : toAnswer(interrupt.kind, question, response.content ?? {});
    if (answer) answers[question.request_id] = answer;
  }
  return answers;
}
