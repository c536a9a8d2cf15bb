/**
 * The files from which a command of `errand work` reads the answers so far and the follow-up messages as they arrive.
 * They exist while the command runs. Limit: a second Ctrl-C leaves them behind.
 */
import { appendFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Work } from "../../client/work.ts";

export interface CommandFiles {
  /** One JSON object: `{request_id: {text?, decision?, data?, by?, at?, message}}`. */
  readonly answers: string;
  /** One A2A Message per line, oldest first. It grows while the command runs. */
  readonly messages: string;
  readonly remove: () => Promise<void>;
}

/** Creates the files in a private directory. */
export async function createCommandFiles(task: Pick<Work, "answers" | "onMessage">): Promise<CommandFiles> {
  const folder = await mkdtemp(join(tmpdir(), "errand-work-"));
  const answers = join(folder, "answers.json");
  const messages = join(folder, "messages.jsonl");
  const entries = [...task.answers].map(([id, { text, decision, data, by, at, message }]) => {
    return [id, { ...(text !== "" && { text }), decision, data, by, at, message }];
  });
  await writeFile(answers, `${JSON.stringify(Object.fromEntries(entries))}\n`);
  await writeFile(messages, "");
  // Synchronous, to keep the order, and so that the file has the earlier messages when the command starts.
  const stop = task.onMessage((message) => appendFileSync(messages, `${JSON.stringify(message)}\n`));
  return {
    answers,
    messages,
    remove: async () => {
      stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
