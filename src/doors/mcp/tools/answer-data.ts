/**
 * Reads the data of an answer that arrives as JSON in a text, as models send objects where a schema does not name a type.
 * A text that fits the question stays a text.
 */
import { openInterrupt } from "../../../engine/delegations/parse.ts";
import { read } from "../../../engine/delegations/read.ts";
import { answerIssues } from "../../../schema/answer-rules.ts";
import type { Interrupt } from "../../../schema/delegation.ts";
import type { AnswerInput, AnswerRequest } from "../../../schema/interrupt.ts";
import { shownName } from "../../../schema/text.ts";
import type { McpContext } from "../context.ts";
import { parsed } from "./lenient.ts";

type Question = Pick<Interrupt, "kind" | "requests">;

/**
 * The answers with the values of such texts. Throws `inexact_number` for JSON with a number that loses digits. Limit: a
 * question that is no longer open has no rules, so there a text stays a text.
 */
export async function withParsedData(
  { broker, principal }: McpContext,
  id: string,
  request: AnswerRequest,
): Promise<AnswerRequest> {
  const { answers, ...single } = request;
  if (![single, ...Object.values(answers ?? {})].some(({ data }) => typeof data === "string")) return request;
  const open = openInterrupt(await read(broker, principal, id));
  if (open?.id !== request.interrupt_id) return request;
  const [first, second] = open.requests;
  if (answers === undefined)
    return first && !second ? { ...request, ...dataOf(open, first.request_id, single, "data") } : request;
  const changed = Object.entries(answers).map(([name, answer]) => {
    const path = `answers.${shownName(name)}.data`;
    return [name, { ...answer, ...dataOf(open, name, answer, path) }] as const;
  });
  return { ...request, answers: Object.fromEntries(changed) };
}

function dataOf({ kind, requests }: Question, name: string, answer: AnswerInput, path: string): object {
  const { data: text } = answer;
  const asked = requests.find(({ request_id }) => request_id === name);
  if (typeof text !== "string" || text.trim() === "" || asked === undefined) return {};
  if (answerIssues(kind, asked, answer).length === 0) return {};
  const data = parsed(text, path);
  return data !== undefined && answerIssues(kind, asked, { ...answer, data }).length === 0 ? { data } : {};
}
