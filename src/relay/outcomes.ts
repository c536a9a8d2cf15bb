/** The outcome of a delegation for each end of a remote task. The agent's text passes, that of its software does not. */
import { type Artifact, type Message, textOf } from "../schema/a2a.ts";
import { truncate } from "../schema/text.ts";
import type { RelayOutcome } from "./port.ts";
import type { RemoteError } from "./remote-error.ts";

/** How A2A SDKs begin the text of an uncaught exception. */
const UNCAUGHT = "Agent execution error:";
const MAX_MESSAGE = 4096;
const RETRY_SECONDS = 5;
const REFUSED_SECONDS = 30;

/** `said` came with the final status; `message` may be older. */
export function replied(
  state: "completed" | "failed" | "rejected",
  message: Message | undefined,
  artifacts: readonly Artifact[],
  said: Message | undefined = message,
): RelayOutcome {
  const text = said ? textOf(said) : "";
  if (state === "failed" && text.startsWith(UNCAUGHT)) {
    const error = { code: "agent_error", message: "The agent's server failed at the task." };
    return { kind: "reply", reply: { state, error } };
  }
  const output = artifacts.length > 0 && { artifacts: [...artifacts] };
  const error = state === "failed" && {
    error: { code: "agent_error", message: truncate(text, MAX_MESSAGE) || "The agent's task failed." },
  };
  return { kind: "reply", reply: { state, ...(message && { message: bare(message) }), ...output, ...error } };
}

/** The id counts the questions, so the same question asked again has the same id. */
export function asked(kind: "input" | "auth", message: Message | undefined, turn: number): RelayOutcome {
  const said = message && message.parts.length > 0 ? { message: bare(message) } : {};
  return { kind: "ask", interrupt: { kind, request_id: `turn-${turn}`, ...said } };
}

export function canceled(message: Message | undefined): RelayOutcome {
  const text = message ? textOf(message) : "";
  return { kind: "canceled", text: text === "" ? undefined : text };
}

/** A later try may succeed; no attempt is spent. */
export function released({ kind, message }: RemoteError): RelayOutcome {
  const delaySeconds = kind === "refused" ? REFUSED_SECONDS : RETRY_SECONDS;
  return { kind: "release", delaySeconds, reason: message };
}

export function failed({ message }: RemoteError, retryable: boolean): RelayOutcome {
  return { kind: "reply", reply: { state: "failed", error: { code: "remote_error", message, retryable } } };
}

/** Part of the work may be done. An attempt is spent, and the next one starts over. */
export function taskLost({ message }: RemoteError): RelayOutcome {
  const error = { code: "remote_task_lost", message, retryable: true };
  return { kind: "reply", reply: { state: "failed", error } };
}

export function tooLarge(): RelayOutcome {
  const message = "The agent's output is larger than a delegation may be.";
  return { kind: "reply", reply: { state: "failed", error: { code: "payload_too_large", message } } };
}

/** Without the remote's task and context ids, which mean nothing here. */
function bare({ taskId: _task, contextId: _context, ...message }: Message): Message {
  return message;
}
