/** The prompts that an agent gets: the task with its files, the decisions of people, follow-up messages. */
import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import type { Answered } from "../../../client/questions.ts";
import type { Work } from "../../../client/work.ts";
import { mediaTypeOf } from "../../files/media-type.ts";
import { isText } from "../../is-text.ts";
import type { CommandFiles } from "../command-files.ts";
import type { Note } from "./notes.ts";

/** A longer file is a link, which the agent reads by itself. */
const EMBEDDED_MAX = 64 * 1024;

type Block = { readonly type: string; readonly [member: string]: unknown };

export const textBlock = (text: string): Block => ({ type: "text", text });

/** The files that came with the task, and the folder for those that go back. */
export async function withFiles(
  text: string,
  { attached, artifacts }: Pick<CommandFiles, "attached" | "artifacts">,
  embeds: boolean,
): Promise<Block[]> {
  const names = attached.map((path) => `- ${path}`).join("\n");
  const came = attached.length === 0 ? "" : `\n\nFiles that came with this task:\n${names}`;
  const back = `\n\nPut files that you return into this folder (ERRAND_ARTIFACTS_DIR): ${artifacts}\n`;
  const blocks = await Promise.all(attached.map((path) => blockOf(path, embeds)));
  return [textBlock(`${text}${came}${back}`), ...blocks];
}

async function blockOf(path: string, embeds: boolean): Promise<Block> {
  const uri = pathToFileURL(path).href;
  const { size } = await stat(path);
  if (embeds && size <= EMBEDDED_MAX) {
    const bytes = await readFile(path);
    if (isText(bytes))
      return {
        type: "resource",
        resource: { uri, mimeType: mediaTypeOf(path, bytes), text: bytes.toString("utf8") },
      };
  }
  const mimeType = mediaTypeOf(path, Buffer.alloc(0));
  return { type: "resource_link", uri, name: basename(path), mimeType, size };
}

/** What people decided while no process of the agent ran. Undefined if nothing was asked. */
export function decisionsText(
  asked: readonly Note[],
  answers: ReadonlyMap<string, Answered>,
  { takesEdits = false } = {},
): string | undefined {
  const lines = asked.flatMap(({ request_id, title, used }) => {
    const answered = answers.get(request_id);
    return used || answered === undefined ? [] : [`- ${title}: ${decisionOf(answered, takesEdits)}`];
  });
  if (lines.length === 0) return asked.length === 0 ? undefined : "Continue.";
  return `Continue. A person has decided what you asked:\n${lines.join("\n")}`;
}

const LOST =
  "An earlier run of this task asked a person and was answered; its conversation is gone, so look at what is done already.";
const AGAIN = "An earlier attempt at this task may have done a part of it.";

/** What a run says first. `isSame`: an earlier run of the delegation had this conversation. */
export function firstWords(
  { text, answers, attempt }: Pick<Work, "text" | "answers" | "attempt">,
  decisions: string | undefined,
  isSame: boolean,
): string[] {
  const lost = !isSame && answers.size > 0 ? [LOST] : [];
  const again = attempt > 1 && decisions === undefined ? [AGAIN] : [];
  return [decisions ?? text, ...lost, ...again];
}

/** The titles of what a person allowed with other arguments. */
export const editedAmong = (asked: readonly Note[], answers: ReadonlyMap<string, Answered>): string[] =>
  asked.flatMap(({ request_id, title, used }) => {
    const { decision, data } = answers.get(request_id) ?? {};
    return !used && decision === "approve" && data !== undefined ? [title] : [];
  });

function decisionOf({ decision, data, text }: Answered, takesEdits: boolean): string {
  const comment = text === "" ? "" : `. The person says: ${text}`;
  const given = data === undefined ? "" : JSON.stringify(data);
  if (decision === "approve" && given !== "" && takesEdits)
    return `allowed once with other arguments; ask again for exactly the same, and it runs with these: ${given}${comment}`;
  if (decision === "approve" && given !== "")
    return `not as you asked for it; do it with these arguments instead, and ask again: ${given}${comment}`;
  if (decision === "approve") return `allowed once; ask again for exactly the same${comment}`;
  if (decision === "deny") return `denied${comment}`;
  return given === "" ? text || "answered" : `${given}${comment}`;
}
