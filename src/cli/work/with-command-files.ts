/** Makes the files of a delegation for as long as they are used. */
import type { Work } from "../../client/work.ts";
import { oneLine } from "../show/output.ts";
import { type CommandFiles, createCommandFiles } from "./command-files.ts";
import { cannotWrite } from "./command-reply.ts";

interface Making {
  readonly script?: string | undefined;
  /** Prints a line for the person who runs the worker. */
  readonly warn: (text: string) => void;
}

export async function withCommandFiles<T>(
  task: Work,
  { script, warn }: Making,
  use: (files: CommandFiles) => Promise<T>,
): Promise<T> {
  const files = await createCommandFiles(task, script).catch((error) => {
    throw cannotWrite(error);
  });
  try {
    return await use(files);
  } finally {
    // The work is done, whatever becomes of its files.
    await files
      .remove()
      .catch((error: unknown) =>
        warn(`cannot remove the files of ${task.delegation.id}: ${oneLine(String(error))}`),
      );
  }
}
