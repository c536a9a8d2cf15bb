/** Runs a handler and converts its result, or the error that it threw, to what is sent to the broker. */
import { CutOffError } from "../lease-holder/lost.ts";
import type { Message } from "../schema/a2a.ts";
import { truncate } from "../schema/text.ts";
import type { ErrandApiError } from "./errors.ts";
import { providerError, providerUnavailable } from "./provider-errors.ts";
import type { QuestionOutcome } from "./questions.ts";
import { asUnavailable, type WorkerUnavailableError } from "./unavailable.ts";
import type { BareMessage, Handler, ReleaseOrCancel, Reply, Work } from "./work.ts";

export type HandlerOutcome = Reply | QuestionOutcome | BareMessage | ReleaseOrCancel | WorkerUnavailableError;

/** Never rejects. */
export async function outcomeOf(handler: Handler, work: Work): Promise<HandlerOutcome> {
  try {
    const outcome = await handler(work);
    if (typeof outcome === "string") return { state: "completed", text: outcome };
    return outcome ?? { state: "completed" };
  } catch (error) {
    const { reason } = work.signal;
    // The error may come from the stop.
    if (reason instanceof CutOffError) return work.release({ reason: reason.message });
    return asUnavailable(error) ?? providerUnavailable(error) ?? failedReply(error);
  }
}

export function failedReply(error: unknown): Reply {
  const message = error instanceof Error ? error.message : String(error);
  const failure = { code: "agent_error", message: truncate(message, 4096) };
  return { state: "failed", error: { ...failure, ...providerError(error) } };
}

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
