/**
 * An A2A message as the answer to an open question. A part says by `request_id` in its metadata (or its message's) what
 * it answers, and by `decision` whether that is approved or denied; one request needs neither. Limit: all requests are
 * answered by one message, as everywhere.
 */
import type { MessageInput, Part } from "../../../schema/a2a.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { type AnswerInput, type AnswerRequest, decisionSchema } from "../../../schema/interrupt.ts";

type Said = MessageInput;
type Metadata = Readonly<Record<string, unknown>> | undefined;

function malformed(path: string, reason: string): ErrandError {
  return new ErrandError("invalid_request", `${path}: ${reason}`, {
    details: { issues: [{ path, reason }] },
  });
}

function textIn(metadata: Metadata, name: string, path: string): string | undefined {
  const value = metadata?.[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && value !== "") return value;
  throw malformed(`${path}.metadata.${name}`, "must be a string");
}

function decisionIn(metadata: Metadata, path: string): "approve" | "deny" | undefined {
  const text = textIn(metadata, "decision", path);
  if (text === undefined) return undefined;
  const decision = decisionSchema.safeParse(text);
  if (decision.success) return decision.data;
  throw malformed(`${path}.metadata.decision`, "must be approve or deny");
}

/** The question that a message says it answers. */
export const interruptNamed = (message: Said): string | undefined =>
  textIn(message.metadata, "interrupt_id", "message");

/** Data alone in a part is told as data, so that an agent gets it as such. */
const isPlainData = (part: Part): boolean =>
  "data" in part && part.mediaType === undefined && part.filename === undefined;

/** How a decision without words travels in A2A; see `partsOf` in task.ts. */
const isDecisionAlone = ({ data }: Part, decision: AnswerInput["decision"]): boolean =>
  decision !== undefined && JSON.stringify(data) === JSON.stringify({ decision });

function toAnswer(message: Said, sent: Part[], decision: AnswerInput["decision"]): AnswerInput {
  const parts = sent.filter((part) => !isDecisionAlone(part, decision));
  const plain = parts.filter(isPlainData);
  const [data] = plain;
  const rest = data && plain.length === 1 ? parts.filter((part) => part !== data) : parts;
  const { parts: _all, taskId: _task, ...head } = message;
  return {
    ...(decision && { decision }),
    ...(rest.length > 0 && { message: { ...head, parts: rest } }),
    ...(rest !== parts && { data: data?.data }),
  };
}

/**
 * `asked` are the open requests; empty when the question is not open any more. What comes out depends on the message
 * alone, so that the same message again is the same answer.
 */
export function toAnswerRequest(
  message: Said,
  interrupt_id: string,
  asked: readonly string[],
): AnswerRequest {
  const common = textIn(message.metadata, "request_id", "message");
  const decided = decisionIn(message.metadata, "message");
  const named = message.parts.map(
    (part, at) => textIn(part.metadata, "request_id", `message.parts.${at}`) ?? common,
  );
  if (asked.length < 2 && named.every((name) => name === undefined)) {
    const decision = message.parts.reduce(
      (found, part, at) => decisionIn(part.metadata, `message.parts.${at}`) ?? found,
      decided,
    );
    return { interrupt_id, ...toAnswer(message, message.parts, decision) };
  }
  const byRequest = new Map<string, { parts: Part[]; decision: AnswerInput["decision"] }>();
  for (const [at, part] of message.parts.entries()) {
    const path = `message.parts.${at}`;
    const name = named[at];
    if (name === undefined) {
      throw malformed(`${path}.metadata.request_id`, `say which request this answers: ${asked.join(", ")}`);
    }
    const found = byRequest.get(name) ?? { parts: [], decision: decided };
    const decision = decisionIn(part.metadata, path) ?? found.decision;
    byRequest.set(name, { parts: [...found.parts, part], decision });
  }
  // An id stands once in the history.
  const { messageId: _first, ...unnamed } = message;
  const answers = [...byRequest].map(([request_id, { parts, decision }], at): [string, AnswerInput] => [
    request_id,
    toAnswer(at === 0 ? message : unnamed, parts, decision),
  ]);
  return { interrupt_id, answers: Object.fromEntries(answers) };
}
