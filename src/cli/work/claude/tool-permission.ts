/**
 * `can_use_tool` as a question. Claude Code takes edited arguments and the reason of a denial, so the answer says all that
 * the person has decided. Limit: what allows more than one call is left to the settings of Claude Code.
 */
import * as z from "zod";
import type { Answered, Question } from "../../../client/questions.ts";
import { sortedJson } from "../../../schema/sorted-json.ts";
import { oneLine } from "../../show/output.ts";
import { type Asked, digestOf, type Settled } from "../acp/asked.ts";
import { unifiedDiff } from "../acp/diffs.ts";
import { NAME_MAX, tooLong } from "../acp/permission.ts";
import { toolText } from "../presets/claude.ts";
import type { ToolDecision, ToolRequest } from "./control.ts";

const argumentsSchema = z.record(z.string(), z.unknown());

const deny = (message: string): ToolDecision => ({ behavior: "deny", message });
const CANCELED = deny("The work was canceled.");

export interface TooLong {
  readonly why: string;
  readonly response: ToolDecision;
}

export function toPermission(request: ToolRequest): Asked<ToolDecision> | TooLong {
  const { tool_name: tool, input, decision_reason: reason } = request;
  const title = titleOf(request);
  const text = [title, reason, diffOf(request)].filter(Boolean).join("\n\n");
  const why = tooLong(title, input, text);
  if (why !== undefined) return { why, response: deny(`${why}. Make several smaller calls.`) };
  const question: Question = {
    text,
    action: { name: oneLine(tool, NAME_MAX), arguments: input },
    edit: true,
  };
  const settle = (answered: Answered) => settled(answered, input, title);
  return { title, digest: digestOfCall(request), question, settle, canceled: CANCELED };
}

/** The tool and its arguments; not the id, which is another one each time. */
export const digestOfCall = ({ tool_name: tool, input }: ToolRequest): string =>
  digestOf({ type: "can_use_tool", tool, input });

const titleOf = ({ tool_name, input }: ToolRequest): string => toolText({ tool_name, input });

function settled(
  { decision, data, text: comment }: Answered,
  input: ToolRequest["input"],
  title: string,
): Settled<ToolDecision> {
  if (decision !== "approve")
    return {
      response: deny(`A person denied this${comment === "" ? "." : `, and says: ${comment}`}`),
      isDenied: true,
    };
  const edited = data === undefined ? input : argumentsSchema.safeParse(data).data;
  if (edited === undefined)
    return { response: deny("A person wants other arguments, but sent none that fit."), isDenied: true };
  const isEdited = sortedJson(edited) !== sortedJson(input);
  return {
    response: { behavior: "allow", updatedInput: edited },
    isDenied: false,
    ...(isEdited && { shown: `'${title}' runs with the arguments that a person edited.` }),
    ...((isEdited || comment !== "") && { say: saidOf(title, isEdited ? edited : undefined, comment) }),
  };
}

/** The response has no place for it, and the model sees only the arguments that it gave. */
function saidOf(title: string, edited: object | undefined, comment: string): string {
  const how = edited ? `, but with other arguments, with which it runs: ${JSON.stringify(edited)}` : "";
  return `A person allowed '${title}'${how}.${comment === "" ? "" : ` The person says: ${comment}`}`;
}

/**
 * The change that a tool of Claude Code is to make to a file, as a diff. Only the tool's own arguments are shown: the file
 * may have what the person who is asked must not see. So the diff has no line numbers.
 */
const editSchema = z.object({ old_string: z.string(), new_string: z.string() });
const changesSchema = z.object({ file_path: z.string(), edits: z.array(editSchema).min(1) });
const changeSchema = editSchema.extend({ file_path: z.string() });

/** Undefined for a tool that makes no such change. */
function diffOf({ input }: Pick<ToolRequest, "input">): string | undefined {
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
