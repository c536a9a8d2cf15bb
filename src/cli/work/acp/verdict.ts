/** What becomes of a delegation after an ACP agent has worked on it. */
import { basename } from "node:path";
import type { Outcome } from "../../../client/work.ts";
import { Head } from "../capture.ts";
import type { CommandResult } from "../child.ts";
import { type ReplyContext, throwIfUnavailable, toReply } from "../command-reply.ts";
import { failed } from "../failed-reply.ts";
import { classify, type Facts } from "../presets/classify.ts";
import { providerCause } from "../presets/provider-words.ts";
import type { Unsent } from "../returned-files.ts";
import { toVerdictReply } from "../verdict-reply.ts";
import type { AgentProcess } from "./agent-process.ts";
import { AgentEndedError, AgentFailedError, AgentRefusedError, ProtocolError } from "./errors.ts";
import { LimitError } from "./limits.ts";
import type { AcpSetup } from "./setup.ts";

export type Ending =
  | { readonly kind: "answered"; readonly answer: string; readonly stopReason: string }
  | { readonly kind: "refused"; readonly error: AgentRefusedError }
  | { readonly kind: "failed"; readonly words: string }
  | { readonly kind: "broken"; readonly why: string }
  | { readonly kind: "limit"; readonly limit: LimitError["limit"] }
  | { readonly kind: "unsent"; readonly unsent: Unsent }
  | { readonly kind: "ended"; readonly result: CommandResult };

/** The files that the agent returns cannot be sent. */
export class UnsentError extends Error {
  override readonly name = "UnsentError";
  readonly unsent: Unsent;

  constructor(unsent: Unsent) {
    super(unsent.message);
    this.unsent = unsent;
  }
}

/** How a run ended by this error; undefined for an error that is not about the agent. Ends an agent that may still work. */
export async function endingOf(error: unknown, agent: AgentProcess): Promise<Ending | undefined> {
  if (error instanceof AgentRefusedError) return { kind: "refused", error };
  if (error instanceof AgentFailedError) return { kind: "failed", words: error.message };
  if (error instanceof AgentEndedError) return { kind: "ended", result: error.result };
  await agent.end();
  if (error instanceof UnsentError) return { kind: "unsent", unsent: error.unsent };
  if (error instanceof LimitError) return { kind: "limit", limit: error.limit };
  return error instanceof ProtocolError ? { kind: "broken", why: error.message } : undefined;
}

export async function outcomeOf(
  ending: Ending,
  { info, printed }: Pick<AgentProcess, "info" | "printed">,
  { command, hasWorked }: Pick<AcpSetup, "command" | "hasWorked">,
  context: ReplyContext,
): Promise<Outcome> {
  const name = info.agentInfo?.title || info.agentInfo?.name || basename(command[0]);
  switch (ending.kind) {
    case "answered": {
      const { answer, stopReason } = ending;
      return replyTo({ name, began: true, answer, stopReason }, printed, context);
    }
    case "refused": {
      const { message } = ending.error;
      return replyTo({ name, began: true, failure: message, ...refusalOf(ending.error) }, printed, context);
    }
    case "failed":
      return replyTo({ name, began: true, failure: ending.words }, printed, context);
    case "broken":
      return failed("agent_protocol_error", `${name} does not keep to the protocol: ${ending.why}`);
    case "unsent":
      return failed(ending.unsent.code, ending.unsent.message);
    case "limit":
      return limitReply(ending.limit, printed, context);
    case "ended": {
      const { result } = ending;
      throwIfUnavailable(result, hasWorked());
      const stderr = result.stderr || printed;
      if (result.exitCode !== 0) return toReply({ ...result, stderr }, context);
      return failed("command_failed", `${name} ended in the middle of its work\n${stderr}`.trim());
    }
  }
}

/** Why the provider refuses all work. Some agents give its HTTP status as the code of the error. */
function refusalOf({ code, message, isSignedOut }: AgentRefusedError): Pick<Facts, "status" | "cause"> {
  if (isSignedOut) return { cause: "signed_out" };
  return { ...providerCause(message), ...(code >= 400 && code < 600 && { status: code }) };
}

/** Of work that was stopped at a limit. `printed`: the end of what the program printed besides. */
export const limitReply = (
  stoppedBy: LimitError["limit"],
  printed: string,
  context: ReplyContext,
): ReturnType<typeof toReply> =>
  toReply(
    { exitCode: null, signal: null, stdout: new Head(0), stderr: printed, stdoutEnd: "", stoppedBy },
    context,
  );

async function replyTo(facts: Facts, printed: string, context: ReplyContext): Promise<Outcome> {
  const end = { exitCode: 0, signal: null, printed, resumes: false };
  return toVerdictReply(classify(facts, end), facts, context);
}
