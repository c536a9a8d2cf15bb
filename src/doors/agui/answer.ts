/**
 * The payload of a resume entry as an answer. A form that is built from `responseSchema` sends a bare value; a client that
 * knows the broker sends the body of an answer. The first interpretation that fits the question is used.
 */
import { answerIssues } from "../../schema/answer-rules.ts";
import { isDecision } from "../../schema/decision.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import {
  type AnswerInput,
  type AnswerRequest,
  answerRequestSchema,
  answerSchema,
} from "../../schema/interrupt.ts";
import { invalidRequest, readAs } from "../../schema/issues.ts";

type Open = Pick<Interrupt, "id" | "kind" | "requests">;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function toAnswerRequest({ id, kind, requests }: Open, payload: unknown): AnswerRequest {
  const body = readAs(answerRequestSchema, isObject(payload) ? { ...payload, interrupt_id: id } : undefined);
  const [only, second] = requests;
  if (!only || second) {
    if (body.success) return body.data;
    throw invalidPayload('send {"answers": {<request_id>: {…}}}, with an answer for each request');
  }
  const interpretations = interpretationsOf(only, payload);
  if (body.success && body.data.answers) return body.data;
  const fitting = interpretations.find((candidate) => answerIssues(kind, only, candidate).length === 0);
  const chosen = fitting ?? interpretations[0];
  if (chosen) return { interrupt_id: id, ...chosen };
  if (isObject(payload) && !body.success)
    throw invalidRequest(body.error, { whole: "The payload", under: "resume.payload" });
  throw invalidPayload("send the body of an answer: decision, text, message, data or answers");
}

/** Denies every request of the question. */
export function toDenial({ id, requests }: Pick<Open, "id" | "requests">): AnswerRequest {
  const deny = { decision: "deny" as const };
  if (requests.length === 1) return { interrupt_id: id, ...deny };
  return {
    interrupt_id: id,
    answers: Object.fromEntries(requests.map(({ request_id }) => [request_id, deny])),
  };
}

function interpretationsOf(
  { options = [], schema, action }: Open["requests"][number],
  payload: unknown,
): AnswerInput[] {
  if (payload === undefined || payload === null) return [];
  const interpretations: AnswerInput[] = [];
  const body = answerSchema.safeParse(payload);
  if (body.success) interpretations.push(body.data);
  if (isDecision(payload) && (action !== undefined || options.includes(payload)))
    interpretations.push({ decision: payload });
  if (typeof payload === "string" && payload !== "" && schema === undefined)
    interpretations.push({ text: payload });
  if (schema !== undefined || (options.length > 0 && !isObject(payload)))
    interpretations.push({ data: payload });
  return interpretations;
}

const invalidPayload = (reason: string): ErrandError =>
  new ErrandError("invalid_request", `resume.payload: ${reason}`, {
    details: { issues: [{ path: "resume.payload", reason }] },
  });
