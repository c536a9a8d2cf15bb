/**
 * Claude Code in print mode. The flags and the events follow https://code.claude.com/docs/en/headless and the output of
 * version 2.1.331.
 */
import * as z from "zod";
import { isObject } from "../../../schema/json-schema/keywords.ts";
import { oneLine } from "../../show/output.ts";
import type { Cause } from "./classify.ts";
import { claudeUsage } from "./claude-usage.ts";
import { absent, type Preset, type ResultBySchema, type Seen, TOOL_MAX } from "./preset.ts";

/**
 * The schema of a result as an argument of Claude Code: its model must call a tool with the result, which comes apart from
 * the answer. The provider takes only objects as the input of a tool, and no choice at the root.
 */
const CHOICES = ["allOf", "anyOf", "oneOf"];

const claudeResult: ResultBySchema = {
  takes: (schema) => isObject(schema) && schema.type === "object" && !CHOICES.some((name) => name in schema),
  args: (schema) => ["--json-schema", JSON.stringify(schema)],
  isSeparate: true,
};

const contentSchema = z.object({
  type: z.string(),
  text: z.string().optional(),
  name: z.string().optional(),
});
const toolSchema = z.object({
  tool_name: z.string().optional(),
  name: z.string().optional(),
  tool_input: z.unknown().optional(),
  input: z.unknown().optional(),
});
const eventSchema = z.object({
  type: z.string(),
  subtype: absent(z.string()),
  session_id: absent(z.string()),
  is_error: absent(z.boolean()),
  result: absent(z.string()),
  message: absent(z.object({ content: z.array(contentSchema) })),
  /** Of an `assistant` event that the program wrote itself: the kind of the error. */
  error: absent(z.string()),
  api_error_status: absent(z.number()),
  num_turns: absent(z.number()),
  stop_reason: absent(z.string()),
  terminal_reason: absent(z.string()),
  errors: absent(z.array(z.string())),
  structured_output: z.unknown().optional(),
  permission_denials: absent(z.array(toolSchema)),
  deferred_tool_use: absent(toolSchema),
  rate_limit_info: absent(z.object({ status: z.string(), resetsAt: absent(z.number()) })),
});
type Event = z.infer<typeof eventSchema>;

export const claude: Preset = {
  program: "claude",
  name: "Claude Code",
  // stream-json needs --verbose. --add-dir takes all arguments up to the next flag.
  args: (session, extra, folders) => [
    ...["-p", "--output-format", "stream-json"],
    ...folders.flatMap((folder) => ["--add-dir", folder]),
    "--verbose",
    ...(session === undefined ? [] : ["--resume", session]),
    ...extra,
  ],
  result: claudeResult,
  read: (event) => {
    const { data } = eventSchema.safeParse(event);
    return data ? { ...seen(data), conversationUsage: claudeUsage(event) } : {};
  },
};

function seen(event: Event): Seen {
  const { type, message, error, rate_limit_info: limit } = event;
  const session = event.session_id ?? undefined;
  if (type === "result") return { session, ...resultOf(event) };
  if (type === "rate_limit_event")
    return limit?.status === "rejected" ? { resetsAt: toMs(limit.resetsAt) } : {};
  if (type !== "assistant") return { session };
  // An error that the program reports in the model's place.
  if (error) return { session, cause: CAUSES[error] };
  const last = message?.content.findLast((part) => part.text || part.name);
  return { session, began: true, progress: last?.text ?? last?.name };
}

const CAUSES: Readonly<Record<string, Cause>> = {
  authentication_failed: "signed_out",
  oauth_org_not_allowed: "signed_out",
  billing_error: "unpaid",
  rate_limit: "limit",
  overloaded: "overloaded",
};

function resultOf(event: Event): Seen {
  const { subtype, is_error, errors, num_turns, deferred_tool_use: deferred } = event;
  const text = event.result ?? undefined;
  const separateResult = jsonOf(event.structured_output);
  const isError = is_error === true || (subtype != null && subtype !== "success");
  const gone = num_turns === 0 && (errors ?? []).some((one) => one.startsWith("No conversation found"));
  return {
    ...((isError ? (num_turns ?? 0) > 0 : num_turns !== 0) && { began: true }),
    ...(isError
      ? { failure: text || errors?.join("\n") || subtype || "error", ...spoken(text ?? "") }
      : { answer: text || (separateResult ?? ""), separateResult }),
    ...(event.api_error_status != null && { status: event.api_error_status }),
    ...(gone && { isGone: true }),
    refused: (event.permission_denials ?? []).map(toolText),
    ...(deferred && { deferred: toolText(deferred) }),
    stopReason: LIMITS[subtype ?? ""] ?? event.stop_reason ?? event.terminal_reason ?? undefined,
  };
}

const LIMITS: Readonly<Record<string, string>> = {
  error_max_turns: "max_turn_requests",
  error_max_budget_usd: "max_budget",
  error_max_structured_output_retries: "unfit_result",
};

/** Null if there is none, or if it is nested too deeply. */
function jsonOf(value: unknown): string | null {
  try {
    return value == null ? null : JSON.stringify(value);
  } catch {
    return null;
  }
}

/** The result of an error is the program's own text; versions before 2.1.300 have no `api_error_status`. */
function spoken(text: string): Seen {
  const status = /^API Error:? \(?(\d{3})\b/.exec(text)?.[1];
  if (status !== undefined) return { status: Number(status) };
  const resetsAt = /^Claude AI usage limit reached\|(\d+)/.exec(text)?.[1];
  if (resetsAt !== undefined) return { cause: "limit", resetsAt: toMs(Number(resetsAt)) };
  const known = SPOKEN.find(([pattern]) => pattern.test(text));
  return known ? { cause: known[1] } : {};
}

const SPOKEN: readonly (readonly [RegExp, Cause])[] = [
  [/^You(?:'|’)ve (?:hit|reached) your .*limit/i, "limit"],
  [/^Credit balance is too low/i, "unpaid"],
  [/· Please run \/login$/, "signed_out"],
  [/^API Error:? \(?(?:Connection error|Unable to connect)/i, "unreachable"],
];

/** Seconds since 1970, but some versions send milliseconds. */
const toMs = (time: number | null | undefined): number | undefined =>
  time == null ? undefined : time < 1e11 ? time * 1000 : time;

/** `Bash touch a.txt`: the tool, and what it was to be used on. */
export function toolText({ tool_name, name, tool_input, input }: z.infer<typeof toolSchema>): string {
  const tool = tool_name ?? name ?? "a tool";
  const given: unknown = tool_input ?? input;
  const { data } = z.record(z.string(), z.unknown()).safeParse(given);
  const first = ["command", "file_path", "url", "pattern"]
    .map((key) => data?.[key])
    .find((value) => typeof value === "string");
  const about = first ?? (given === undefined ? "" : JSON.stringify(given));
  return oneLine(`${tool} ${about}`.trim(), TOOL_MAX);
}
