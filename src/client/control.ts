/**
 * Calls on existing delegations: answers, decisions, follow-ups, cancel and redrive, one or many. An answer that names
 * no question is for the one that is open when the broker reads it.
 */
import * as z from "zod";
import type { MessageInput } from "../schema/a2a.ts";
import { type Delegation, delegationSchema, type Interrupt } from "../schema/delegation.ts";
import {
  type AnswerBody,
  type AnswerRequestInput,
  type BulkRefused,
  bulkRefusedSchema,
} from "../schema/interrupt.ts";
import { localError } from "./errors.ts";
import { type Http, route } from "./http.ts";
import { randomKey } from "./random-key.ts";

/** The answer to one request of a question: a text, or any of `decision`, `text` or `message`, and `data`. */
export type Answer = string | AnswerBody;
/** All requests of one question are answered at once, each under its `request_id`. */
export interface Answers {
  readonly answers: Readonly<Record<string, Answer>>;
}

export interface ControlOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface DecideOptions extends ControlOptions {
  /** The reason or a condition, sent to the agent with the decision. */
  readonly text?: string | undefined;
  /** Any JSON, for the agent. */
  readonly data?: unknown;
  /** The question. Default: the open one, which must have a single request. */
  readonly interruptId?: string | undefined;
}

/** Selects delegations of one agent for a bulk call. */
export interface BulkFilter {
  /** The agent's name. */
  readonly target: string;
  /** Their error code; for a redrive only. */
  readonly error_code?: string | undefined;
  /** Created before this ISO 8601 instant. */
  readonly before?: string | undefined;
}

export interface BulkOptions extends ControlOptions {
  /** Stops after this many. Default: all. */
  readonly limit?: number | undefined;
  /** Called for each delegation that the broker refused to change. */
  readonly onRefused?: ((refused: BulkRefused) => void) | undefined;
}

export function post(http: Http, path: string, body: object, signal?: AbortSignal): Promise<Delegation> {
  return http.persist(delegationSchema, { method: "POST", path, body, signal });
}

/** `interruptId` null: the question that is open. */
export async function sendAnswer(
  http: Http,
  id: string,
  interruptId: string | null,
  answer: Answer | Answers,
  signal?: AbortSignal,
): Promise<Delegation> {
  const several = typeof answer === "object" && "answers" in answer;
  const interrupt_id = interruptId ?? (await openQuestion(http, id, several, signal));
  const said = several
    ? { answers: Object.fromEntries(Object.entries(answer.answers).map(([key, one]) => [key, bodyOf(one)])) }
    : bodyOf(answer);
  const body: AnswerRequestInput = { interrupt_id, ...said };
  return post(http, route`/v1/delegations/${id}/answer`, body, signal);
}

const bodyOf = (answer: Answer): AnswerBody => (typeof answer === "string" ? { text: answer } : answer);

export function decide(http: Http, id: string, decision: "approve" | "deny", options: DecideOptions) {
  const { text, data, interruptId = null, signal } = options;
  const answer = { decision, ...(text !== undefined && { text }), ...(data !== undefined && { data }) };
  return sendAnswer(http, id, interruptId, answer, signal);
}

async function openQuestion(
  http: Http,
  id: string,
  several: boolean,
  signal: AbortSignal | undefined,
): Promise<string> {
  const { interrupt, state } = await http.persist(delegationSchema, {
    path: route`/v1/delegations/${id}`,
    signal,
  });
  if (interrupt === null) throw nothingAsked(id, state);
  if (interrupt.requests.length > 1 && !several) throw severalAsked(id, interrupt);
  return interrupt.id;
}

/** Every retry has the same id, so the message arrives once. */
export function sendMessage(http: Http, id: string, said: string | MessageInput, signal?: AbortSignal) {
  const given: MessageInput = typeof said === "string" ? { parts: [{ text: said }] } : said;
  const message = { ...given, messageId: given.messageId ?? randomKey() };
  return post(http, route`/v1/delegations/${id}/messages`, { message }, signal);
}

const bulkSchema = z.object({
  delegations: z.array(delegationSchema),
  refused: z.array(z.object(bulkRefusedSchema.shape)).default([]),
  next_before: z.string().nullable(),
});
/** A page of whole delegations, each up to 3 MiB. */
const PAGE = 20;

export async function* inBulk(
  http: Http,
  verb: "redrive" | "cancel",
  filter: BulkFilter,
  { limit = Number.POSITIVE_INFINITY, signal, onRefused }: BulkOptions,
): AsyncGenerator<Delegation, void> {
  let { before } = filter;
  let reported = new Set<string>();
  for (let left = limit; left > 0; ) {
    const body = { ...filter, ...(before !== undefined && { before }), limit: Math.min(PAGE, left) };
    const page = await http.persist(bulkSchema, {
      method: "POST",
      path: `/v1/delegations/${verb}`,
      body,
      signal,
    });
    // The next page begins at the instant of the last delegation, so a refusal may be listed twice.
    for (const refused of page.refused) {
      if (!reported.has(refused.delegation_id)) onRefused?.(refused);
    }
    reported = new Set(page.refused.map(({ delegation_id }) => delegation_id));
    yield* page.delegations;
    left -= page.delegations.length;
    const isStuck = page.delegations.length === 0 && page.next_before === before;
    if (page.next_before === null || isStuck) return;
    before = page.next_before;
  }
}

function nothingAsked(id: string, state: string) {
  return localError({
    code: "interrupt_not_open",
    category: "PROTOCOL",
    detail: `${id} asks nothing: it is ${state}`,
    recovery: "Read the delegation; it may have been answered, or have expired.",
  });
}

function severalAsked(id: string, { id: interrupt_id, requests }: Interrupt) {
  const request_ids = requests.map(({ request_id }) => request_id);
  return localError({
    code: "invalid_request",
    category: "PROTOCOL",
    detail: `${id} asks ${requests.length} things at once: ${request_ids.join(", ")}`,
    recovery: "Answer all of them at once, each by its request_id.",
    details: { interrupt_id, request_ids },
  });
}
