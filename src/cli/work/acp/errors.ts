/** The ways in which a call to an ACP agent fails. */
import type { CommandResult } from "../child.ts";

/** AUTH_REQUIRED of the protocol. */
const AUTH_REQUIRED = -32000;

/** The agent answered with an error. */
export class AgentRefusedError extends Error {
  override readonly name = "AgentRefusedError";
  readonly code: number;

  constructor(code: number, message: string, data: unknown) {
    super(withDetails(message, data));
    this.code = code;
  }

  get isSignedOut(): boolean {
    return this.code === AUTH_REQUIRED;
  }
}

/** The agent said that the turn failed. */
export class AgentFailedError extends Error {
  override readonly name = "AgentFailedError";
}

/** The agent's process ended before it answered. */
export class AgentEndedError extends Error {
  override readonly name = "AgentEndedError";
  readonly result: CommandResult;

  constructor(result: CommandResult) {
    super("the agent ended");
    this.result = result;
  }
}

/** The agent did not keep to the protocol. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/** Agents put what happened into `data`: as a text, or under one of these names. */
const DETAILS = ["details", "message"] as const;

function withDetails(message: string, data: unknown): string {
  const members: Readonly<Record<string, unknown>> = typeof data === "object" ? { ...data } : {};
  const details = typeof data === "string" ? data : DETAILS.map((name) => members[name]).find(Boolean);
  return typeof details === "string" && details !== "" && details !== message
    ? `${message}: ${details}`
    : message;
}
