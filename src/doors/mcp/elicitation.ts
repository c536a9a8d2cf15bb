/**
 * A delegation's questions as MCP forms (elicitation), and the filled-in forms as answers. Limit: forms are flat; a
 * question with a nested schema becomes a form for text. A form never asks for a credential, only whether it was given.
 */
import { type InputRequests, inputRequired, inputResponse, isSpecType } from "@modelcontextprotocol/server";
import { preview } from "../../engine/delegations/preview.ts";
import { textOf } from "../../schema/a2a.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import type { AnswerInput } from "../../schema/interrupt.ts";

type Question = Interrupt["requests"][number];
type Form = Parameters<typeof inputRequired.elicit>[0];

const MESSAGE_BYTES = 4_096;
const DECISION = {
  type: "string",
  enum: ["approve", "deny"],
  title: "Decision",
  description: "For a yes-or-no question",
} as const;
const NO_SECRETS =
  "Do not type secrets here. Give the credential where the agent says, then approve; or deny.";

/** Unique within the delegation: an interrupt's id is never reused, nor is a request_id within it. */
export const inputKey = (interrupt: Interrupt, { request_id }: Question): string =>
  `${interrupt.id}:${request_id}`;

const optionsOf = ({ options = [] }: Question): string[] =>
  options.every((option) => typeof option === "string") ? [...new Set(options.map(String))] : [];

/** A form with the agent's own schema, if MCP allows it. */
function schemaForm({ schema }: Question, message: string): Form | undefined {
  const form: unknown = { mode: "form", message, requestedSchema: schema };
  return schema !== undefined && isSpecType.ElicitRequestFormParams(form) ? form : undefined;
}

function formOf(kind: Interrupt["kind"], question: Question): Form {
  const message = preview(textOf(question.message), MESSAGE_BYTES);
  if (kind === "auth") {
    return {
      mode: "form",
      message: `${message}\n${NO_SECRETS}`,
      requestedSchema: {
        type: "object",
        properties: { decision: { ...DECISION, enum: [...DECISION.enum] } },
        required: ["decision"],
      },
    };
  }
  const own = schemaForm(question, message);
  if (own) return own;
  const options = optionsOf(question);
  if (options.length > 0) {
    return {
      mode: "form",
      message,
      requestedSchema: {
        type: "object",
        properties: { answer: { type: "string", enum: options, title: "Answer" } },
        required: ["answer"],
      },
    };
  }
  return {
    mode: "form",
    message,
    requestedSchema: {
      type: "object",
      properties: {
        answer: { type: "string", title: "Answer" },
        decision: { ...DECISION, enum: [...DECISION.enum] },
      },
    },
  };
}

/** A form for each open request, by key; none when no question is open. */
export function toInputRequests(
  { interrupt }: Pick<Delegation, "interrupt">,
  answered: ReadonlySet<string> = new Set(),
): InputRequests {
  if (interrupt === null) return {};
  const open = interrupt.requests.filter(({ request_id }) => !answered.has(request_id));
  return Object.fromEntries(
    open.map((question) => [
      inputKey(interrupt, question),
      inputRequired.elicit(formOf(interrupt.kind, question)),
    ]),
  );
}

const isFilled = (text: unknown): text is string => typeof text === "string" && text !== "";

/** Undefined for an empty form, which is no approval. */
function toAnswer(
  kind: Interrupt["kind"],
  question: Question,
  content: Record<string, unknown>,
): AnswerInput | undefined {
  const { decision, answer } = content;
  const decided = decision === "approve" || decision === "deny" ? decision : undefined;
  if (kind === "input" && schemaForm(question, "") !== undefined) {
    const texts = Object.values(content);
    const [only] = texts;
    return { data: content, ...(texts.length === 1 && isFilled(only) && { text: only }) };
  }
  if (kind === "input" && isFilled(answer)) return { text: answer, ...(decided && { decision: decided }) };
  return decided && { decision: decided };
}

function responseTo(
  interrupt: Interrupt,
  question: Question,
  responses: Readonly<Record<string, unknown>> | undefined,
) {
  const key = inputKey(interrupt, question);
  return inputResponse({ [key]: responses?.[key] }, key);
}

/** Whether the user dismissed a form without an answer. */
export const isDismissed = (
  { interrupt }: Pick<Delegation, "interrupt">,
  responses: Readonly<Record<string, unknown>> | undefined,
): boolean =>
  interrupt?.requests.some((question) => {
    const response = responseTo(interrupt, question, responses);
    return response.kind === "elicit" && response.action === "cancel";
  }) === true;

/** Answers by request_id. Ignores responses to other requests, and dismissed forms: their questions stay open. */
export function toAnswers(
  { interrupt }: Pick<Delegation, "interrupt">,
  responses: Readonly<Record<string, unknown>> | undefined,
): Record<string, AnswerInput> {
  const answers: Record<string, AnswerInput> = {};
  if (interrupt === null) return answers;
  for (const question of interrupt.requests) {
    const response = responseTo(interrupt, question, responses);
    if (response.kind !== "elicit" || response.action === "cancel") continue;
    const answer: AnswerInput | undefined =
      response.action === "decline"
        ? { decision: "deny" }
        : toAnswer(interrupt.kind, question, response.content ?? {});
    if (answer) answers[question.request_id] = answer;
  }
  return answers;
}
