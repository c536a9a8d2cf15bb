/**
 * Questions of a delegation as forms of MCP (elicitation), and what was filled in as answers. Limit: forms are flat;
 * a schema that is not becomes a form for a text. A credential is never asked for in a form, only whether it was given.
 */
import { type InputRequests, inputRequired, inputResponse, isSpecType } from "@modelcontextprotocol/server";
import { preview } from "../../engine/delegations/delegate.ts";
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
  description: "Where it asks for a yes or no",
} as const;
const NO_SECRETS =
  "Do not type secrets here: give the credential where the agent says, then approve; or deny.";

/** Unique for the life of a delegation: a question's id is made once, and its requests are answered once. */
export const keyOf = (interrupt: Interrupt, { request_id }: Question): string =>
  `${interrupt.id}:${request_id}`;

const optionsOf = ({ options = [] }: Question): string[] =>
  options.every((option) => typeof option === "string") ? [...new Set(options.map(String))] : [];

/** The agent's own schema where a form can have it. */
function ownForm({ schema }: Question, message: string): Form | undefined {
  const form: unknown = { mode: "form", message, requestedSchema: schema };
  return schema !== undefined && isSpecType.ElicitRequestFormParams(form) ? form : undefined;
}

function formOf(kind: Interrupt["kind"], question: Question): Form {
  const asked = preview(textOf(question.message), MESSAGE_BYTES);
  if (kind === "auth") {
    return {
      mode: "form",
      message: `${asked}\n${NO_SECRETS}`,
      requestedSchema: {
        type: "object",
        properties: { decision: { ...DECISION, enum: [...DECISION.enum] } },
        required: ["decision"],
      },
    };
  }
  const own = ownForm(question, asked);
  if (own) return own;
  const options = optionsOf(question);
  if (options.length > 0) {
    return {
      mode: "form",
      message: asked,
      requestedSchema: {
        type: "object",
        properties: { answer: { type: "string", enum: options, title: "Answer" } },
        required: ["answer"],
      },
    };
  }
  return {
    mode: "form",
    message: asked,
    requestedSchema: {
      type: "object",
      properties: {
        answer: { type: "string", title: "Answer" },
        decision: { ...DECISION, enum: [...DECISION.enum] },
      },
    },
  };
}

/** The open requests, by their keys; none when nothing is asked. */
export function toInputRequests(
  { interrupt }: Pick<Delegation, "interrupt">,
  given: ReadonlySet<string> = new Set(),
): InputRequests {
  if (interrupt === null) return {};
  const open = interrupt.requests.filter(({ request_id }) => !given.has(request_id));
  return Object.fromEntries(
    open.map((question) => [
      keyOf(interrupt, question),
      inputRequired.elicit(formOf(interrupt.kind, question)),
    ]),
  );
}

const filled = (text: unknown): text is string => typeof text === "string" && text !== "";

/** Nothing when nothing was filled in: an empty form approves of nothing. */
function toAnswer(
  kind: Interrupt["kind"],
  question: Question,
  content: Record<string, unknown>,
): AnswerInput | undefined {
  const { decision, answer } = content;
  const decided = decision === "approve" || decision === "deny" ? decision : undefined;
  if (kind === "input" && ownForm(question, "") !== undefined) {
    const texts = Object.values(content);
    const [only] = texts;
    return { data: content, ...(texts.length === 1 && filled(only) && { text: only }) };
  }
  if (kind === "input" && filled(answer)) return { text: answer, ...(decided && { decision: decided }) };
  return decided && { decision: decided };
}

function responseTo(
  interrupt: Interrupt,
  question: Question,
  responses: Readonly<Record<string, unknown>> | undefined,
) {
  const key = keyOf(interrupt, question);
  return inputResponse({ [key]: responses?.[key] }, key);
}

/** The user put a form away without an answer. */
export const isDismissed = (
  { interrupt }: Pick<Delegation, "interrupt">,
  responses: Readonly<Record<string, unknown>> | undefined,
): boolean =>
  interrupt?.requests.some((question) => {
    const response = responseTo(interrupt, question, responses);
    return response.kind === "elicit" && response.action === "cancel";
  }) === true;

/**
 * Answers by request_id. What is not about an open request is passed over, and so is a form that was put away: its
 * question stays open.
 */
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
