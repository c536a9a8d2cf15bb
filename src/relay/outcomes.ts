/**
 * Maps each end of a remote task to an outcome of the delegation. The agent's own text is passed on; error texts of its
 * software are not.
 */
import { type Artifact, type Message, textOf } from "../schema/a2a.ts";
import { truncate } from "../schema/text.ts";
import type { RelayOutcome } from "./port.ts";
import type { RemoteError } from "./remote-error.ts";

/** How A2A SDKs begin the text of an uncaught exception. */
const UNCAUGHT = "Agent execution error:";
const MAX_MESSAGE = 4096;
const RETRY_SECONDS = 5;
const REFUSED_SECONDS = 30;

/** `finalMessage` came with the final status; `message` may be an older one. */
export function replied(
  state: "completed" | "failed" | "rejected",
  message: Message | undefined,
  artifacts: readonly Artifact[],
  finalMessage: Message | undefined = message,
): RelayOutcome {
  const text = finalMessage ? textOf(finalMessage) : "";
  if (state === "failed" && text.startsWith(UNCAUGHT)) {
    const error = { code: "agent_error", message: "The agent's server failed at the task." };
    return { kind: "reply", reply: { state, error } };
  }
  const output = artifacts.length > 0 && { artifacts: [...artifacts] };
  const error = state === "failed" && {
    error: { code: "agent_error", message: truncate(text, MAX_MESSAGE) || "The agent's task failed." },
  };
  return {
    kind: "reply",
    reply: { state, ...(message && { message: withoutTask(message) }), ...output, ...error },
  };
}

/** A bare Message, from a server that started no task. */
export function messaged(message: Message): RelayOutcome {
  return { kind: "message", message: withoutTask(message) };
}

/** `turn` is the number of the question. It makes the request id, so a repeated call asks the same question. */
export function asked(kind: "input" | "auth", message: Message | undefined, turn: number): RelayOutcome {
  const content = message && message.parts.length > 0 ? { message: withoutTask(message) } : {};
  return { kind: "ask", interrupt: { kind, request_id: `turn-${turn}`, ...content } };
}

export function canceled(message: Message | undefined): RelayOutcome {
  const text = message ? textOf(message) : "";
  return { kind: "canceled", text: text === "" ? undefined : text };
}

/** A later run may succeed. A release costs no attempt. */
export function released({ kind, message, pause }: RemoteError): RelayOutcome {
  const delaySeconds = kind === "refused" ? REFUSED_SECONDS : RETRY_SECONDS;
  return { kind: "release", delaySeconds, reason: message, pause };
}

export function failed({ message }: RemoteError, retryable: boolean): RelayOutcome {
  return { kind: "reply", reply: { state: "failed", error: { code: "remote_error", message, retryable } } };
}

/** The server has the message and may have done the work, so the message is not sent again. */
export function unreadable({ message }: RemoteError): RelayOutcome {
  const text = `The A2A server has the message, but its answer cannot be read: ${message}`;
  const error = { code: "remote_answer_unreadable", message: truncate(text, MAX_MESSAGE), retryable: false };
  return { kind: "reply", reply: { state: "failed", error } };
}

/** Part of the work may be done. This costs an attempt, and the next one starts over. */
export function taskLost({ message }: RemoteError): RelayOutcome {
  const error = { code: "remote_task_lost", message, retryable: true };
  return { kind: "reply", reply: { state: "failed", error } };
}

export function tooLarge(): RelayOutcome {
  const message = "The agent's output exceeds the size limit of a delegation.";
  return { kind: "reply", reply: { state: "failed", error: { code: "payload_too_large", message } } };
}

/** Nothing was sent: the delegator may send less. */
export function filesTooLarge({ message }: Error): RelayOutcome {
  const error = { code: "payload_too_large", message, retryable: false };
  return { kind: "reply", reply: { state: "failed", error } };
}

/** Removes the A2A server's task and context ids, which mean nothing to the delegator. */
function withoutTask({ taskId: _task, contextId: _context, ...message }: Message): Message {
  return message;
}
