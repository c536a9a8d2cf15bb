/**
 * An A2A message as the answer to an open question. The metadata of a part, or of the message, names the `requestId`
 * (or `request_id`) that it answers, and a `decision`; a question with one request needs no `requestId`. Limit: one
 * message answers all requests.
 */
import type { MessageInput, Part } from "../../../schema/a2a.ts";
import { decisionSchema } from "../../../schema/decision.ts";
import { ErrandError } from "../../../schema/errors.ts";
import type { AnswerInput, AnswerRequest } from "../../../schema/interrupt.ts";

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

/** Reads an id in A2A's spelling or in that of the agent protocol. */
function idIn(
  metadata: Metadata,
  [camel, snake]: readonly [string, string],
  path: string,
): string | undefined {
  const [id, same] = [textIn(metadata, camel, path), textIn(metadata, snake, path)];
  if (id !== undefined && same !== undefined)
    throw malformed(`${path}.metadata.${snake}`, `is also sent as ${camel}; send one of them`);
  return id ?? same;
}
const INTERRUPT_ID = ["interruptId", "interrupt_id"] as const;
const REQUEST_ID = ["requestId", "request_id"] as const;

function decisionIn(metadata: Metadata, path: string): "approve" | "deny" | undefined {
  const text = textIn(metadata, "decision", path);
  if (text === undefined) return undefined;
  const decision = decisionSchema.safeParse(text);
  if (decision.success) return decision.data;
  throw malformed(`${path}.metadata.decision`, "must be approve or deny");
}

/** The interrupt that the message names in its metadata. */
export const namedInterrupt = (message: MessageInput): string | undefined =>
  idIn(message.metadata, INTERRUPT_ID, "message");

/**
 * In the spelling that agents receive. The message keeps no ids, because the broker adds its own; a part keeps the request
 * that it answers.
 */
function toAgentNames(message: MessageInput): MessageInput {
  const { interruptId: _interrupt, requestId: _request, ...metadata } = message.metadata ?? {};
  const parts = message.parts.map((part) => {
    const { requestId, ...others } = part.metadata ?? {};
    return requestId === undefined || requestId === null
      ? part
      : { ...part, metadata: { ...others, request_id: requestId } };
  });
  return { ...message, parts, ...(message.metadata && { metadata }) };
}

/** A part with nothing but data becomes the answer's `data`. */
const isPlainData = ({ mediaType = "application/json", filename, ...part }: Part): boolean =>
  "data" in part && mediaType === "application/json" && filename === undefined;

/** A part that only repeats the decision; see `nonEmptyParts` in task.ts. */
const isDecisionAlone = ({ data }: Part, decision: AnswerInput["decision"]): boolean =>
  decision !== undefined && JSON.stringify(data) === JSON.stringify({ decision });

function toAnswer(message: MessageInput, sent: Part[], decision: AnswerInput["decision"]): AnswerInput {
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
 * `openRequests` is empty when the question is no longer open. The result depends only on the message, so that a
 * repeated message is the same answer.
 */
export function toAnswerRequest(
  given: MessageInput,
  interrupt_id: string,
  openRequests: readonly string[],
): AnswerRequest {
  const messageRequest = idIn(given.metadata, REQUEST_ID, "message");
  const messageDecision = decisionIn(given.metadata, "message");
  const named = given.parts.map(
    (part, at) => idIn(part.metadata, REQUEST_ID, `message.parts.${at}`) ?? messageRequest,
  );
  const message = toAgentNames(given);
  if (openRequests.length < 2 && named.every((name) => name === undefined)) {
    const decision = message.parts.reduce(
      (found, part, at) => decisionIn(part.metadata, `message.parts.${at}`) ?? found,
      messageDecision,
    );
    return { interrupt_id, ...toAnswer(message, message.parts, decision) };
  }
  const byRequest = new Map<string, { parts: Part[]; decision: AnswerInput["decision"] }>();
  for (const [at, part] of message.parts.entries()) {
    const path = `message.parts.${at}`;
    const name = named[at];
    if (name === undefined) {
      throw malformed(
        `${path}.metadata.requestId`,
        `name the request that this part answers: ${openRequests.join(", ")}`,
      );
    }
    const found = byRequest.get(name) ?? { parts: [], decision: messageDecision };
    const decision = decisionIn(part.metadata, path) ?? found.decision;
    byRequest.set(name, { parts: [...found.parts, part], decision });
  }
  // A message id must be unique in the history.
  const { messageId: _first, ...unnamed } = message;
  const answers = [...byRequest].map(([request_id, { parts, decision }], at): [string, AnswerInput] => [
    request_id,
    toAnswer(at === 0 ? message : unnamed, parts, decision),
  ]);
  return { interrupt_id, answers: Object.fromEntries(answers) };
}
