/** Runs a handler and converts its result, or the error that it threw, to what is sent to the broker. */
import { CutOffError } from "../lease-holder/lost.ts";
import type { Message } from "../schema/a2a.ts";
import { truncate } from "../schema/text.ts";
import { ErrandApiError } from "./errors.ts";
import { HandlerTimeoutError } from "./handler-limits.ts";
import { providerError, providerUnavailable } from "./provider-errors.ts";
import { QuestionOutcome } from "./questions.ts";
import { asUnavailable, type WorkerUnavailableError } from "./unavailable.ts";
import { durationText } from "./words.ts";
import { BareMessage, type Handler, type Outcome, ReleaseOrCancel, type Reply, type Work } from "./work.ts";

/** The handler threw this. */
export class Thrown {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

export type HandlerOutcome =
  | Reply
  | QuestionOutcome
  | BareMessage
  | ReleaseOrCancel
  | WorkerUnavailableError
  | Thrown;

/** Never rejects. */
export async function outcomeOf(handler: Handler, work: Work): Promise<HandlerOutcome> {
  try {
    return toOutcome(await handler(work));
  } catch (error) {
    const { reason } = work.signal;
    // The error may come from the stop.
    if (reason instanceof CutOffError) return work.release({ reason: reason.message });
    return asUnavailable(error) ?? providerUnavailable(error) ?? new Thrown(error);
  }
}

function toOutcome(outcome: Outcome): HandlerOutcome {
  if (outcome === undefined) return { state: "completed" };
  if (typeof outcome === "string") return { state: "completed", text: outcome };
  if (outcome instanceof QuestionOutcome || outcome instanceof BareMessage) return outcome;
  if (outcome instanceof ReleaseOrCancel) return outcome;
  if ("data" in outcome) {
    const { data, text, state: _completed, ...rest } = outcome;
    const parts = [...(text === undefined ? [] : [{ text }]), { data }];
    return { ...rest, state: "completed", message: { parts } };
  }
  if (!("state" in outcome))
    throw new TypeError(
      "the handler returned an object with neither `state` nor `data`: return { data } for JSON",
    );
  return outcome;
}

/**
 * The reply for an error that the handler threw. Its message does not contain that of the error, which may have paths and
 * secrets: the delegator is someone else.
 */
export function failedReply(error: unknown, isWorthRetry: boolean, tellsErrors: boolean): Reply {
  const retryable = isWorthRetry ? { retryable: true } : {};
  if (error instanceof HandlerTimeoutError) {
    const { message } = error;
    return {
      state: "failed",
      error: { code: "handler_timeout", category: "TIMEOUT", message, ...retryable },
    };
  }
  if (error instanceof ErrandApiError && !tellsErrors) return failedCall(error, retryable);
  const provider = providerError(error);
  const of = provider === null ? "" : ` in a call of ${provider.provider}`;
  const told = error instanceof Error ? error.message : String(error);
  const message = tellsErrors ? truncate(told, 4096) : `The agent failed${of}${nameOf(error)}.`;
  return { state: "failed", error: { code: "agent_error", message, ...provider, ...retryable } };
}

/** A call to the broker failed within the handler. Its code and the broker's title for it name nothing of the call. */
function failedCall({ code, status, problem, retryAfterMs }: ErrandApiError, retryable: object): Reply {
  const when = retryAfterMs === undefined ? "" : `, retry after ${durationText(retryAfterMs)}`;
  const title = status === 0 ? "" : `${problem.title} `;
  const message = `A call of the agent to the broker failed: ${title}(${code}${when}).`;
  return { state: "failed", error: { code: "agent_error", message, ...retryable } };
}

/** The name of the error's class. */
const nameOf = (error: unknown): string =>
  error instanceof Error && /^[\w$.]{1,64}$/.test(error.name) ? `: ${error.name}` : "";

/** Fails the delegation, which would otherwise wait for a reply that the broker never accepts. */
export function refusedReply({ code, message }: ErrandApiError, what = "reply"): Reply {
  return { state: "failed", error: { code, message: `the broker refused the agent's ${what}: ${message}` } };
}

/**
 * The A2A answer of a lease that is a bare Message, the only form in which a reply is one. Without the message's own
 * `delegation_id`, which may be that of another broker.
 */
export function messageAnswer(leaseId: string, { metadata, ...message }: Message): object {
  const { delegation_id: _other, ...rest } = metadata ?? {};
  return {
    jsonrpc: "2.0",
    id: leaseId,
    result: { message: { ...message, ...(metadata && { metadata: rest }) } },
  };
}

/** A canceled A2A Task, the only form in which an agent can cancel. */
export function canceledTask(leaseId: string, id: string, text: string | undefined): object {
  const message = { messageId: `${id}.canceled`, role: "ROLE_AGENT", parts: [{ text }] };
  const status = { state: "TASK_STATE_CANCELED", ...(text !== undefined && { message }) };
  return { jsonrpc: "2.0", id: leaseId, result: { task: { id, status } } };
}
