/**
 * Answering an open question: the delegation goes back to its agent, before new work, with the answer in its
 * history. Limit: all requests of a question are answered at once.
 */
import type { StoredDelegation } from "../lifecycle/record.ts";
import type { Message } from "../schema/a2a.ts";
import { interruptSchema } from "../schema/delegation.ts";
import { ErrandError } from "../schema/errors.ts";
import type { AnswerInput, AnswerRequest, GivenAnswer } from "../schema/interrupt.ts";
import { type Principal, requireControl } from "./access.ts";
import type { Broker } from "./context.ts";
import { follow } from "./dispatch.ts";
import { bodyHash } from "./idempotency.ts";
import { toUserMessage, withoutAnswer } from "./interrupt.ts";
import { read } from "./read.ts";
import { refusal } from "./refuse.ts";

const storedInterrupt = interruptSchema.pick({ id: true, requests: true });

/** Throws `interrupt_not_open` when it is another's, or spent with another answer; the same answer again is none. */
export async function answer(
  broker: Broker,
  principal: Principal,
  id: string,
  request: AnswerRequest,
): Promise<StoredDelegation> {
  const before = await read(broker, principal, id);
  requireControl(principal, before, "answer its questions");
  const { interrupt_id } = request;
  const open = before.interrupt === null ? null : storedInterrupt.parse(JSON.parse(before.interrupt));
  // Of a question that is not open only the hash counts: was it this very answer that closed it?
  const given = open?.id === interrupt_id ? byRequest(request, open.requests) : {};
  const answers = Object.entries(given).map(([request_id, one]) => toAnswer(interrupt_id, request_id, one));
  const { outcome, record } = await broker.writer.move({
    move: "answer",
    id,
    params: {
      interrupt_id,
      // Opened meanwhile, it would be closed with no answer.
      only_repeat: open?.id !== interrupt_id || undefined,
      answer_hash: bodyHash(request),
      answers: JSON.stringify(
        Object.fromEntries(answers.map(({ request_id, given }) => [request_id, given])),
      ),
    },
    event: {
      interrupt_id: JSON.stringify(interrupt_id),
      by: JSON.stringify(principal.text),
      answers: JSON.stringify(
        Object.fromEntries(answers.map(({ request_id, given: { decision } }) => [request_id, { decision }])),
      ),
    },
    history: answers.map(({ given: { message } }) => JSON.stringify(message)),
    read: true,
  });
  if (outcome.outcome === "ok" && record) {
    await follow(broker, id, outcome);
    return record;
  }
  if (outcome.outcome === "duplicate" && record) return record;
  throw refusal(outcome, id);
}

function byRequest(
  { answers, interrupt_id: _id, ...single }: AnswerRequest,
  requests: readonly { readonly request_id: string }[],
): Record<string, AnswerInput> {
  const wanted = requests.map(({ request_id }) => request_id);
  const [only = ""] = wanted;
  if (answers === undefined && wanted.length === 1) return { [only]: single };
  const given = Object.keys(answers ?? {});
  const issues = [
    ...wanted
      .filter((one) => !given.includes(one))
      .map((one) => ({ path: `answers.${one}`, reason: "missing" })),
    ...given
      .filter((one) => !wanted.includes(one))
      .map((one) => ({ path: `answers.${one}`, reason: "nothing was asked under this request_id" })),
  ];
  if (issues.length === 0) return answers ?? {};
  throw new ErrandError(
    "invalid_request",
    "Every request of the question is answered at once, and no other.",
    {
      details: { issues },
    },
  );
}

/** As it stands in the history, and as the agent gets it when it asks again. */
function toAnswer(interrupt_id: string, request_id: string, { decision, text, message, data }: AnswerInput) {
  const parts: Message["parts"] = [...(message?.parts ?? (text === undefined ? [] : [{ text }]))];
  if (data !== undefined) parts.push({ data });
  if (parts.length === 0 && decision !== undefined) parts.push({ text: decision });
  const said = toUserMessage({
    ...message,
    parts,
    metadata: {
      ...withoutAnswer(message?.metadata),
      interrupt_id,
      request_id,
      ...(decision && { decision }),
    },
  });
  const given: GivenAnswer = {
    ...(decision && { decision }),
    message: said,
    ...(data !== undefined && { data }),
  };
  return { request_id, given };
}
