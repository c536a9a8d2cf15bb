/**
 * The files from which a command of `errand work` reads the answers so far, the children that it waited for, the follow-up
 * messages as they arrive, and the files that came with the task; its script, if the task is one; the schema of its
 * result, if it has one; and the folder in which it returns files. They exist for one attempt. A worker that is killed
 * leaves them behind, until the next one starts.
 */

import { appendFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { WaitedFor } from "../../client/wait-for.ts";
import type { Work } from "../../client/work.ts";
import { isStored } from "../../schema/file-url.ts";
import { FileNames } from "../file-names.ts";
import { chunksOf } from "../files/download-file.ts";
import { makeFolder, noteGroup, removeFolder } from "./temp-folder.ts";

export interface CommandFiles {
  /** One JSON object: `{request_id: {text?, decision?, data?, by?, at?, message}}`. */
  readonly answers: string;
  /** One JSON object: `{outcome, children: [{id, state, delegation?}]}`; undefined: it did not wait. */
  readonly children: string | undefined;
  /** One A2A Message per line, oldest first. It grows while the command runs. */
  readonly messages: string;
  /** The folder with the files of the task; undefined without any. */
  readonly folder: string | undefined;
  /** The paths of the files in it. */
  readonly attached: readonly string[];
  /** An empty folder for the files that the command returns. */
  readonly artifacts: string;
  /** The file with the JSON Schema that the result must fit; undefined: it may be anything. */
  readonly resultSchema: string | undefined;
  /** The file to which the command may write what it has used. */
  readonly usage: string;
  /** The file with the script that the command runs, if it was given. */
  readonly script: string | undefined;
  /** The command runs in this process group. */
  readonly runsAs: (group: number) => void;
  readonly remove: () => Promise<void>;
}

type Task = Pick<Work, "answers" | "delegation" | "delegator" | "onMessage" | "signal">;

export interface Given {
  readonly script?: string | undefined;
  /** What became of the children for which the command waited. */
  readonly waited?: WaitedFor | undefined;
}

/** Creates the files in a private directory: all or none. */
export async function createCommandFiles(task: Task, given: Given = {}): Promise<CommandFiles> {
  const folder = await makeFolder();
  try {
    return await filesIn(folder, task, given);
  } catch (error) {
    await removeFolder(folder).catch(() => undefined);
    throw error;
  }
}

async function filesIn(folder: string, task: Task, { script, waited }: Given): Promise<CommandFiles> {
  const answers = join(folder, "answers.json");
  const messages = join(folder, "messages.jsonl");
  const entries = [...task.answers].map(([id, { text, decision, data, by, at, message }]) => {
    return [id, { ...(text !== "" && { text }), decision, data, by, at, message }];
  });
  await writeFile(answers, `${JSON.stringify(Object.fromEntries(entries))}\n`);
  await writeFile(messages, "");
  const artifacts = join(folder, "artifacts");
  await mkdir(artifacts);
  const scriptFile = await writeText(join(folder, "task.sh"), script);
  const children = await writeJson(join(folder, "children.json"), waited);
  const resultSchema = await writeJson(join(folder, "result-schema.json"), task.delegation.result_schema);
  const attached = await writeAttached(join(folder, "files"), task);
  // Synchronous, to keep the order, and so that the file has the earlier messages when the command starts.
  const stop = task.onMessage((message) => appendFileSync(messages, `${JSON.stringify(message)}\n`));
  return {
    answers,
    children,
    messages,
    folder: attached.length === 0 ? undefined : join(folder, "files"),
    attached,
    artifacts,
    resultSchema,
    usage: join(folder, "usage.json"),
    script: scriptFile,
    runsAs: (group) => noteGroup(folder, group),
    remove: async () => {
      stop();
      await removeFolder(folder);
    },
  };
}

async function writeText(path: string, text: string | undefined): Promise<string | undefined> {
  if (text === undefined) return undefined;
  await writeFile(path, text);
  return path;
}

const writeJson = (path: string, value: unknown): Promise<string | undefined> =>
  writeText(path, value === undefined ? undefined : JSON.stringify(value));

/** Those in the message, and those of the broker that it names. */
async function writeAttached(
  folder: string,
  { delegation, delegator, signal }: Pick<Task, "delegation" | "delegator" | "signal">,
): Promise<string[]> {
  const paths: string[] = [];
  const names = new FileNames();
  for (const part of delegation.message.parts) {
    if (part.raw === undefined && !isStored(part)) continue;
    const path = join(folder, names.nextPath(part.filename ?? "", "file"));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, chunksOf(delegator, [part], signal), { signal });
    paths.push(path);
  }
  return paths;
}
