/**
 * The variables that `errand work` sets for its commands. A command may start a broker, which ignores them (config.ts).
 */
export const COMMAND_VARIABLES = [
  "ERRAND_AGENT_PROCESS",
  "ERRAND_ANSWER",
  "ERRAND_ANSWERS_FILE",
  "ERRAND_ARTIFACTS_DIR",
  "ERRAND_ATTEMPT",
  "ERRAND_AUTO_APPROVE",
  "ERRAND_CHILDREN_FILE",
  "ERRAND_CONTEXT_ID",
  "ERRAND_DECISION",
  "ERRAND_DELEGATION_ID",
  "ERRAND_FILES_DIR",
  "ERRAND_LEASE_ID",
  "ERRAND_MESSAGES_FILE",
  "ERRAND_PROGRESS_FD",
  "ERRAND_RESULT_SCHEMA_FILE",
  "ERRAND_TASK",
  "ERRAND_USAGE_FILE",
] as const;

export type CommandVariables = Partial<Record<(typeof COMMAND_VARIABLES)[number], string>>;
