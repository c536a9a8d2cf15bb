/** The arguments of Claude Code in print mode, with messages both ways. */
export interface Given {
  /** The path of the settings with the hook. */
  readonly settings: string | undefined;
  readonly extra: readonly string[];
}

/** `session` is the conversation to continue, `folders` are those that it may use besides its own. */
export const argumentsOf = (
  session: string | undefined,
  folders: readonly string[],
  { settings, extra }: Given,
): string[] => [
  ...["-p", "--input-format", "stream-json", "--output-format", "stream-json"],
  // Takes all arguments up to the next flag.
  ...folders.flatMap((folder) => ["--add-dir", folder]),
  ...["--verbose", "--replay-user-messages", "--permission-prompt-tool", "stdio"],
  ...(settings === undefined ? [] : ["--settings", settings]),
  ...(session === undefined ? [] : ["--resume", session]),
  ...extra,
];
