/** The prompt of a preset's program: the task, and the files that came with it, because a model reads no environment. */
import type { CommandFiles } from "../command-files.ts";

export function promptOf(
  said: readonly string[],
  { attached, artifacts }: Pick<CommandFiles, "attached" | "artifacts">,
): string {
  const text = said.join("\n\n");
  if (attached.length === 0) return text;
  const names = attached.map((path) => `- ${path}`).join("\n");
  return `${text}\n\nFiles that came with this task:\n${names}\n\nPut files that you return into this folder: ${artifacts}\n`;
}

/** The folders that the program may use besides its own. */
export const foldersOf = ({ folder, artifacts }: Pick<CommandFiles, "folder" | "artifacts">): string[] =>
  folder === undefined ? [artifacts] : [folder, artifacts];
