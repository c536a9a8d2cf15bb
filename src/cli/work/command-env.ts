/** The environment of a command of `errand work`. It has none of the worker's secrets. */
import type { Work } from "../../client/work.ts";
import type { CliHost } from "../host.ts";
import type { CommandFiles } from "./command-files.ts";
import type { CommandVariables } from "./command-variables.ts";

const IN_ENV_MAX = 32 * 1024;

export interface CommandEnvironment {
  readonly inherited: CliHost["childEnv"];
  /** The broker's URL, for a command with a token of its own. */
  readonly url: string | undefined;
  readonly progressFd?: number | undefined;
}

export function envFor(
  task: Work,
  environment: CommandEnvironment,
  files: CommandFiles,
): Record<string, string | undefined> {
  const { answer } = task;
  const { progressFd } = environment;
  const autoApprove = task.delegation.auto_approve;
  const set: CommandVariables = {
    ...(progressFd !== undefined && { ERRAND_PROGRESS_FD: String(progressFd) }),
    ...(fits(task.text) && { ERRAND_TASK: task.text }),
    ERRAND_DELEGATION_ID: task.delegation.id,
    ERRAND_LEASE_ID: task.leaseId,
    ERRAND_ATTEMPT: String(task.attempt),
    ERRAND_CONTEXT_ID: task.delegation.context_id,
    ...(autoApprove !== undefined && { ERRAND_AUTO_APPROVE: JSON.stringify(autoApprove) }),
    // Never "", which would look like an answer to a shell script.
    ...(answer && answer.text !== "" && fits(answer.text) && { ERRAND_ANSWER: answer.text }),
    ...(answer?.decision && { ERRAND_DECISION: answer.decision }),
    ERRAND_ANSWERS_FILE: files.answers,
    ...(files.children !== undefined && { ERRAND_CHILDREN_FILE: files.children }),
    ERRAND_MESSAGES_FILE: files.messages,
    ERRAND_ARTIFACTS_DIR: files.artifacts,
    ERRAND_USAGE_FILE: files.usage,
    ...(files.resultSchema !== undefined && { ERRAND_RESULT_SCHEMA_FILE: files.resultSchema }),
    ...(files.folder !== undefined && { ERRAND_FILES_DIR: files.folder }),
  };
  return { ...sharedEnv(environment), ...set };
}

/** The variables that do not depend on the task. */
export function sharedEnv({ inherited, url }: CommandEnvironment): Record<string, string | undefined> {
  const { ERRAND_COMMAND_TOKEN: ownToken } = inherited;
  return {
    ...withoutOwn(inherited),
    ...(ownToken && { ...(url && { ERRAND_URL: url }), ERRAND_TOKEN: ownToken }),
  };
}

/**
 * Drops tokens, keys and URLs with passwords, also those of later versions. This worker may itself be a command of
 * `errand work`, so its task and answer are dropped, too.
 */
function withoutOwn(inherited: CommandEnvironment["inherited"]): CommandEnvironment["inherited"] {
  return Object.fromEntries(
    Object.entries(inherited).filter(([name]) => name === "ERRAND_URL" || !name.startsWith("ERRAND_")),
  );
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) <= IN_ENV_MAX && !text.includes("\0");
}
