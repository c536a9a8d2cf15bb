/**
 * The change that a tool of Claude Code is to make to a file, as a diff. Only the tool's own arguments are shown: the file
 * may have what the person who is asked must not see. So the diff has no line numbers.
 */
import * as z from "zod";
import { unifiedDiff } from "../acp/unified-diff.ts";
import type { ToolRequest } from "./control.ts";

const editSchema = z.object({ old_string: z.string(), new_string: z.string() });
const changesSchema = z.object({ file_path: z.string(), edits: z.array(editSchema).min(1) });
const changeSchema = editSchema.extend({ file_path: z.string() });

/** Undefined for a tool that makes no such change. */
export function diffOf({ input }: Pick<ToolRequest, "input">): string | undefined {
  const one = changeSchema.safeParse(input).data;
  const { file_path: path, edits } =
    changesSchema.safeParse(input).data ?? (one && { ...one, edits: [one] }) ?? {};
  if (path === undefined || edits === undefined) return undefined;
  return edits
    .map(({ old_string, new_string }) =>
      unifiedDiff({ type: "diff", path, oldText: old_string, newText: new_string }).replace(
        /^@@ .* @@$/m,
        "@@",
      ),
    )
    .join("\n");
}
