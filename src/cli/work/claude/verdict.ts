/** What becomes of a delegation after Claude Code has worked on it. */
import type { Outcome, Work } from "../../../client/work.ts";
import { ProtocolError } from "../acp/errors.ts";
import { LimitError } from "../acp/limits.ts";
import { limitReply, UnsentError } from "../acp/verdict.ts";
import { throwIfUnavailable } from "../command-reply.ts";
import { failed } from "../failed-reply.ts";
import { claude } from "../presets/claude.ts";
import { wantedResult } from "../result.ts";
import { toVerdictReply } from "../verdict-reply.ts";
import type { ClaudeSetup } from "./setup.ts";
import type { Talked } from "./talk.ts";

export async function outcomeOf(
  { run, result, verdict }: Talked,
  { limits, hasWorked }: ClaudeSetup,
  task: Pick<Work, "artifact" | "delegation">,
): Promise<Outcome> {
  if (!run.began) throwIfUnavailable(result, hasWorked());
  const send = (...chunk: Parameters<Work["artifact"]>) => task.artifact(...chunk);
  const wanted = wantedResult(task.delegation, claude);
  return toVerdictReply(verdict(false), run, { limits, send, result: wanted });
}

/** Otherwise another attempt goes on in the conversation, with what people have decided. */
export function endsWork({ run, verdict }: Talked): boolean {
  const how = verdict(false);
  return how.kind === "completed" || (how.kind === "failed" && run.began && how.retryable !== true);
}

/** Throws an error that is not about the program. */
export async function outcomeOfError(
  error: unknown,
  { limits }: ClaudeSetup,
  task: Pick<Work, "artifact">,
): Promise<Outcome> {
  if (error instanceof UnsentError) return failed(error.unsent.code, error.unsent.message);
  if (error instanceof ProtocolError)
    return failed("agent_protocol_error", `${claude.name} does not keep to its protocol: ${error.message}`);
  if (!(error instanceof LimitError)) throw error;
  const send = (...chunk: Parameters<Work["artifact"]>) => task.artifact(...chunk);
  return limitReply(error.limit, "", { limits, send });
}
