/** What the form delegates. */

import type { DelegateOptions, TaskInput } from "../../client/delegator-options.ts";
import { filePart } from "../../client/files.ts";
import type { MessageInput, Part } from "../../schema/a2a.ts";
import type { AutoApprove } from "../../schema/auto-approve.ts";
import type { Values } from "./values.ts";

const autoApproveOf = (text: string): AutoApprove =>
  text === "all" ? true : { actions: text.split(/[\s,]+/).filter(Boolean) };

/** With the parts that are kept of an earlier task. */
export async function inputOf(
  values: Values,
  files: readonly File[],
  kept: readonly Part[],
): Promise<[input: TaskInput, options: DelegateOptions]> {
  const text = (name: "target" | "task" | "deadline" | "parent" | "approve"): string => values[name].trim();
  const added = await Promise.all(files.map(partOf));
  const parts = [...kept, ...added];
  const message: MessageInput = { parts: [{ text: text("task") }, ...parts] };
  return [
    {
      target: text("target"),
      ...(parts.length > 0 ? { message } : { task: text("task") }),
      priority: Number(values.priority),
      ...(text("approve") !== "" && { auto_approve: autoApproveOf(text("approve")) }),
    },
    {
      ...(text("deadline") !== "" && { deadline: new Date(text("deadline")) }),
      ...(text("parent") !== "" && { parentId: text("parent") }),
    },
  ];
}

const partOf = async (file: File): Promise<Part> =>
  filePart(file.name, new Uint8Array(await file.arrayBuffer()), file.type || undefined);
