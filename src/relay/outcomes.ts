/**
 * What the end of a remote task is to its delegation. Limit: words of the agent pass, those of its software do not.
 */
import { type Artifact, type Message, textOf } from "../schema/a2a.ts";
import { truncate } from "../schema/text.ts";
import type { RelayOutcome } from "./port.ts";
import type { RemoteError } from "./remote-error.ts";

/** How SDKs of A2A begin the text of an exception that nobody caught. */
const UNCAUGHT = "Agent execution error:";
const MAX_MESSAGE = 4096;
const AGAIN_SECONDS = 5;
const REFUSED_SECONDS = 30;

/** `said` stands with the end itself; `message` may be older. */
export function reply(
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

/** The same question, asked again, has the same id: it is counted, not named by what it says. */
export function question(kind: "input" | "auth", message: Message | undefined, turn: number): RelayOutcome {
  const said = message && message.parts.length > 0 ? { message: bare(message) } : {};
  return { kind: "ask", interrupt: { kind, request_id: `turn-${turn}`, ...said } };
}

export function canceled(message: Message | undefined): RelayOutcome {
  const text = message ? textOf(message) : "";
  return { kind: "canceled", text: text === "" ? undefined : text };
}

/** It may go better later; no attempt is spent. */
export function waiting({ kind, message }: RemoteError): RelayOutcome {
  const delaySeconds = kind === "refused" ? REFUSED_SECONDS : AGAIN_SECONDS;
  return { kind: "release", delaySeconds, reason: message };
}

export function failed({ message }: RemoteError, retryable: boolean): RelayOutcome {
  return { kind: "reply", reply: { state: "failed", error: { code: "remote_error", message, retryable } } };
}

/** Half of it may have been done; an attempt is spent, and the next begins anew. */
export function lost({ message }: RemoteError): RelayOutcome {
  const error = { code: "remote_task_lost", message, retryable: true };
  return { kind: "reply", reply: { state: "failed", error } };
}

export function tooLarge(): RelayOutcome {
  const message = "The agent's output is larger than a delegation may be.";
  return { kind: "reply", reply: { state: "failed", error: { code: "payload_too_large", message } } };
}

/** The task and the conversation of the remote mean nothing on this side. */
function bare({ taskId: _task, contextId: _context, ...message }: Message): Message {
  return message;
}
