/** Makes the files of a delegation for as long as they are used. */
import type { Work } from "../../client/work.ts";
import { oneLine } from "../show/output.ts";
import { type CommandFiles, createCommandFiles, type Given } from "./command-files.ts";
import { cannotWrite } from "./command-reply.ts";

interface Making extends Given {
  /** Prints a line for the person who runs the worker. */
  readonly warn: (text: string) => void;
}

export async function withCommandFiles<T>(
  task: Work,
  { warn, ...given }: Making,
  use: (files: CommandFiles) => Promise<T>,
): Promise<T> {
  const files = await createCommandFiles(task, given).catch((error) => {
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
