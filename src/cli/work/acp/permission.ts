/**
 * `session/request_permission` as a question. Approve is the agent's option for this one call, deny is its option to reject
 * this one; what allows or rejects more is only an option that the person picks. The protocol takes no edited arguments, so
 * an edit is a denial, and the agent is told what the person wants.
 */
import type { Answered, Question } from "../../../client/questions.ts";
import { sortedJson } from "../../../schema/sorted-json.ts";
import { oneLine } from "../../show/output.ts";
import { type Asked, digestOf, type Settled } from "./asked.ts";
import type { PermissionAnswer } from "./connection.ts";
import { unifiedDiff } from "./diffs.ts";
import type { PermissionOption, ToolCall } from "./schemas.ts";

/** More than this, nobody reads; and what is cut could not be approved. */
const SHOWN_MAX = 64 * 1024;
/** Of an action. */
export const NAME_MAX = 256;
const TITLE_MAX = 200;

export type AskedPermission = Asked<PermissionAnswer>;
/** It is rejected without asking anybody. */
export interface Refusal {
  readonly response: PermissionAnswer;
  readonly why: string;
}

/** Why a person cannot be asked about so much; undefined: it can be shown whole. */
export function tooLong(title: string, proposed: object, text: string): string | undefined {
  const size = Buffer.byteLength(JSON.stringify(proposed)) + Buffer.byteLength(text);
  return size > SHOWN_MAX
    ? `'${title}' was refused: its ${size} bytes are too long to be shown whole`
    : undefined;
}

/** `call`: what the agent has said about the tool call so far. */
export function toPermission(
  call: ToolCall,
  options: readonly PermissionOption[],
): AskedPermission | Refusal {
  const title = titleOf(call);
  const once = options.find(({ kind }) => kind === "allow_once");
  const reject = options.find(({ kind }) => kind === "reject_once");
  const response = { reject: selected(reject), allow: selected(once) };
  const proposed = argumentsOf(call);
  const text = textOf(call, title);
  const why = tooLong(title, proposed, text);
  if (why !== undefined) return { response: response.reject, why };
  if (once === undefined)
    return {
      response: response.reject,
      why: `'${title}' was refused: the agent offers no way to allow it once`,
    };
  const named = namedOptions(options.filter((one) => one !== once && one !== reject));
  const question: Question = {
    text,
    action: { name: toolNameOf(call), arguments: proposed },
    edit: true,
    ...(named.size > 0 && { options: ["approve", "deny", ...named.keys()] }),
  };
  const settle = (answered: Answered): Settled<PermissionAnswer> => {
    const { decision, data, text: comment } = answered;
    if (decision === "approve" && data !== undefined && sortedJson(data) !== sortedJson(proposed))
      return {
        response: response.reject,
        isDenied: true,
        say: `A person did not allow '${title}' as you asked for it, but wants it with these arguments: ${JSON.stringify(data)}${said(comment)}`,
        shown: `'${title}' is denied, and the agent is told the edited arguments: it takes none.`,
      };
    if (decision === "approve")
      return {
        response: response.allow,
        isDenied: false,
        ...(comment !== "" && { say: `A person allowed '${title}', and says: ${comment}` }),
      };
    const option = decision === undefined ? named.get(comment) : undefined;
    if (option) return { response: selected(option), isDenied: option.kind.startsWith("reject") };
    return {
      response: response.reject,
      isDenied: true,
      ...(comment !== "" && { say: `A person denied '${title}', and says: ${comment}` }),
    };
  };
  const canceled = selected(undefined);
  return { title, digest: digestOfCall(call), question, settle, canceled };
}

/**
 * `kind`, `title`, arguments and changes of files; not the id, which is another one each time. What an agent says of a call
 * counts only where it gives no arguments.
 */
const digestOfCall = ({ kind, title, rawInput, content = [] }: ToolCall): string => {
  const shown = rawInput === undefined ? content : content.filter(({ type }) => type === "diff");
  return digestOf({ type: "permission", kind, title, rawInput, shown });
};

/** What later messages say of a tool call replaces what was said before. */
export function merged(known: ToolCall | undefined, { toolCallId, ...more }: ToolCall): ToolCall {
  const given = Object.fromEntries(Object.entries(more).filter(([, value]) => value != null));
  return { ...known, rawInput: known?.rawInput, ...given, toolCallId };
}

export const titleOf = (call: ToolCall): string =>
  oneLine(call.title || call.name || call.kind || "a tool", TITLE_MAX);

export function toolNameOf({ name, kind, _meta }: ToolCall): string {
  const vendor = _meta?.claudeCode;
  const own =
    typeof vendor === "object" && vendor !== null && "toolName" in vendor ? vendor.toolName : undefined;
  return oneLine(typeof own === "string" && own !== "" ? own : name || kind || "tool", NAME_MAX) || "tool";
}

function argumentsOf({ rawInput, title }: ToolCall): Record<string, unknown> {
  if (typeof rawInput === "object" && rawInput !== null && !Array.isArray(rawInput)) return { ...rawInput };
  return rawInput === undefined ? { title: title ?? "" } : { input: rawInput };
}

const textOf = ({ content, title }: ToolCall, shown: string): string =>
  [
    title || shown,
    ...(content ?? []).map((one) => (one.type === "diff" ? unifiedDiff(one) : one.content.text)),
  ].join("\n\n");

/** Under names that are not those of the decisions, and no two alike. */
function namedOptions(options: readonly PermissionOption[]): Map<string, PermissionOption> {
  const named = new Map<string, PermissionOption>();
  for (const option of options) {
    const name = oneLine(option.name, NAME_MAX);
    const taken = name === "" || name === "approve" || name === "deny" || named.has(name);
    named.set(taken ? `${name} (${option.optionId})` : name, option);
  }
  return named;
}

const selected = (option: PermissionOption | undefined): PermissionAnswer => ({
  outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" },
});

const said = (comment: string): string => (comment === "" ? "" : `\n${comment}`);
