/**
 * The files that a command of `errand work` reads what was said to it from: the answers so far, and the follow-ups as
 * they arrive. Limit: they are there as long as the command runs; a second Ctrl-C leaves them behind.
 */
import { appendFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Work } from "../../client/work.ts";

export interface CommandFiles {
  /** One JSON object: `{request_id: {text?, decision?, data?, by?, at?, message}}`. */
  readonly answers: string;
  /** An A2A Message a line, the oldest first; it grows while the command runs. */
  readonly messages: string;
  readonly remove: () => Promise<void>;
}

/** In a folder of its own that nobody else may read. */
export async function layOut(task: Pick<Work, "answers" | "onMessage">): Promise<CommandFiles> {
  const folder = await mkdtemp(join(tmpdir(), "errand-work-"));
  const answers = join(folder, "answers.json");
  const messages = join(folder, "messages.jsonl");
  const said = [...task.answers].map(([id, { text, decision, data, by, at, message }]) => {
    return [id, { ...(text !== "" && { text }), decision, data, by, at, message }];
  });
  await writeFile(answers, `${JSON.stringify(Object.fromEntries(said))}\n`);
  await writeFile(messages, "");
  // At once, so that they stand there in the order in which they came, the first ones before the command starts.
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
