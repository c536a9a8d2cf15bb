/**
 * Answers a delegation's question. Limit: an answer without a question's id goes to the question that is open when the
 * delegation is read.
 */
import { type Delegation, delegationSchema, type Interrupt } from "../schema/delegation.ts";
import type { AnswerBody, AnswerRequestInput } from "../schema/interrupt.ts";
import type { AnswerOptions } from "./delegator-options.ts";
import { localError } from "./errors.ts";
import { type Http, route } from "./http.ts";
import { randomKey } from "./random-key.ts";

/** The answer to one request of a question: a text, or any of `decision`, `text` or `message`, and `data`. */
export type Answer = string | AnswerBody;
/** The answers to all requests of one question, each under its `request_id`. */
export interface Answers {
  readonly answers: Readonly<Record<string, Answer>>;
}

export interface DecideOptions extends AnswerOptions {
  /** The reason or a condition, sent to the agent with the decision. */
  readonly text?: string | undefined;
  /** Any JSON that the question asks for, or, with `edit` and `approve`, the edited arguments of its action. */
  readonly data?: unknown;
  /** The question's id. Default: the open question, which must have a single request. */
  readonly interruptId?: string | undefined;
}

/** A null `interruptId` stands for the open question. */
export async function sendAnswer(
  http: Http,
  id: string,
  interruptId: string | null,
  answer: Answer | Answers,
  { idempotencyKey = randomKey(), signal }: AnswerOptions = {},
): Promise<Delegation> {
  const several = typeof answer === "object" && "answers" in answer;
  const interrupt_id = interruptId ?? (await openQuestion(http, id, several, signal));
  const content = several
    ? { answers: Object.fromEntries(Object.entries(answer.answers).map(([key, one]) => [key, bodyOf(one)])) }
    : bodyOf(answer);
  const body: AnswerRequestInput = { interrupt_id, ...content };
  const path = route`/v1/delegations/${id}/answer`;
  const headers = { "idempotency-key": idempotencyKey };
  return http.requestWithRetry(delegationSchema, { method: "POST", path, body, headers, signal });
}

const bodyOf = (answer: Answer): AnswerBody => (typeof answer === "string" ? { text: answer } : answer);

export function decide(http: Http, id: string, decision: "approve" | "deny", options: DecideOptions) {
  const { text, data, interruptId = null } = options;
  const answer = { decision, ...(text !== undefined && { text }), ...(data !== undefined && { data }) };
  return sendAnswer(http, id, interruptId, answer, options);
}

async function openQuestion(
  http: Http,
  id: string,
  several: boolean,
  signal: AbortSignal | undefined,
): Promise<string> {
  const { interrupt, state } = await http.requestWithRetry(delegationSchema, {
    path: route`/v1/delegations/${id}`,
    signal,
  });
  if (interrupt === null) throw noOpenQuestion(id, state);
  if (interrupt.requests.length > 1 && !several) throw severalRequests(id, interrupt);
  return interrupt.id;
}

function noOpenQuestion(id: string, state: string) {
  return localError({
    code: "interrupt_not_open",
    category: "PROTOCOL",
    detail: `${id} has no open question: it is ${state}`,
    recovery: "Get the delegation: its question may have been answered, or may have expired.",
  });
}

function severalRequests(id: string, { id: interrupt_id, requests }: Interrupt) {
  const request_ids = requests.map(({ request_id }) => request_id);
  return localError({
    code: "invalid_request",
    category: "PROTOCOL",
    detail: `${id} asks ${requests.length} things at once: ${request_ids.join(", ")}`,
    recovery: "Answer all of them in one call, each under its request_id.",
    details: { interrupt_id, request_ids },
  });
}
