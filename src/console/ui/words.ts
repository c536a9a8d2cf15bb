/** States, names and times as people say them. */
import { largestUnit, nameOf, timeLeft } from "../../client/words.ts";
import type { Message } from "../../schema/a2a.ts";
import { isBudgetQuestion } from "../../schema/budget-question.ts";
import type { State } from "../../schema/delegation.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { TASK_END, taskEnd } from "../data/task-end.ts";

/** How a state is drawn: its colour and its shape. */
export type Phase = "queued" | "working" | "awaits" | "asks" | "completed" | "failed" | "canceled";

export const PHASES: Readonly<Record<State, Phase>> = {
  submitted: "queued",
  working: "working",
  input_required: "asks",
  auth_required: "asks",
  awaiting_children: "awaits",
  completed: "completed",
  failed: "failed",
  rejected: "failed",
  canceled: "canceled",
};

export const STATE_WORDS: Readonly<Record<State, string>> = {
  submitted: "queued",
  working: "working",
  input_required: "asks a question",
  auth_required: "asks for access",
  awaiting_children: "waits for parts",
  completed: "completed",
  failed: "failed",
  rejected: "rejected",
  canceled: "canceled",
};

export { largestUnit, nameOf };

/** Who asks: the agent, or for a larger budget the broker. */
export const askerOf = ({ target, interrupt }: Pick<ListedDelegation, "target" | "interrupt">): string =>
  isBudgetQuestion(interrupt?.id) ? `The broker, about ${target}` : target;

/** What somebody did who decided so, or answered otherwise. */
export const decided = (decision: unknown): string =>
  decision === "approve" ? "approved" : decision === "deny" ? "denied" : "answered";

/**
 * The task in a list. The broker cuts it at 100 bytes, or up to three before, on a character; here it is cut between two
 * words. If its end is known, it is cut in the middle.
 */
export function taskText({
  task_preview,
  message,
  task_end = message ? taskEnd(message) : "",
}: Pick<ListedDelegation, "task_preview" | "task_end"> & { readonly message?: Message }): string {
  const bytes = new TextEncoder().encode(task_preview).length;
  if (bytes <= 96 || (bytes < 100 && bytes === task_preview.length))
    return plainTitle(task_preview) || "(no text)";
  const start = task_end ? [...task_preview].slice(0, -TASK_END).join("") : task_preview;
  return plainTitle(`${beforeCut(start)}…${afterCut(task_end)}`);
}

/** In characters; a longer word is cut all the same, as is a language without spaces. */
const LONG_WORD = 24;

/** Without the part of a word at the cut. */
export function beforeCut(text: string): string {
  const at = text.search(/\s\S*$/);
  return at > 0 && text.length - at <= LONG_WORD ? text.slice(0, at).trimEnd() : text;
}

function afterCut(text: string): string {
  const at = text.search(/\s/);
  return at >= 0 && at < LONG_WORD ? text.slice(at) : text;
}

/** What Markdown puts at the start of a line. A list that is numbered begins with 1. */
const LINE_SIGNS = /^(?:(?:#{1,6}|[>*+-]|1[.)])\s+)+/;
/** None reads past the place where the next one of its kind could begin, so each takes linear time. */
const INLINE_SIGNS = [/\*\*([^\s*][^*]*)\*\*/g, /`([^`]+)`/g, /!?\[([^[\]]+)\]\([^)\s[]*\)/g] as const;
/** In characters; a shorter line, such as a greeting, says too little. */
const SHORT_LINE = 20;

/** The first line without the signs of Markdown, and `…` if there are more. A short one goes on with the next line. */
export function plainTitle(text: string): string {
  const lines = text.split("\n").map(plainLine).filter(hasWords);
  let title = lines.shift() ?? text.trim();
  while (lines.length > 0 && title.length < SHORT_LINE) title += ` ${lines.shift()}`;
  return lines.length > 0 && !title.endsWith("…") ? `${title} …` : title;
}

const plainLine = (line: string): string =>
  INLINE_SIGNS.reduce(
    (plain, signs) => plain.replaceAll(signs, "$1"),
    line
      .trim()
      .replace(/^(?:```|~~~).*/, "")
      .replace(LINE_SIGNS, ""),
  );

const hasWords = (line: string): boolean => /[\p{L}\p{N}]/u.test(line);

/** The step that an agent is at; empty if it reports none. */
export function stepOf({ progress }: Pick<ListedDelegation, "progress">): string {
  const { done, total, current_step, message } = progress ?? {};
  const count = done === undefined ? "" : total === undefined ? `${done}` : `${done}/${total}`;
  return [count, current_step ?? message ?? ""].filter(Boolean).join(" ");
}

/** The time to the end, as the agent estimates it; empty if it does not. */
export function etaOf({ progress }: Pick<ListedDelegation, "progress">): string {
  const { eta_seconds } = progress ?? {};
  return eta_seconds === undefined ? "" : `about ${timeLeft(eta_seconds * 1000)} to go`;
}

/** A worker that reported before is quiet after this time. */
const QUIET_MS = 600_000;

/** `No report for 32 min`: its worker reported, and then nothing was heard. Otherwise empty. */
export function quietText(
  { state, progress, updated_at }: Pick<ListedDelegation, "state" | "progress" | "updated_at">,
  now: number,
): string {
  const ms = now - Date.parse(updated_at);
  // One that never reports is not known to be quiet.
  if (state !== "working" || progress === null || ms < QUIET_MS) return "";
  return `No report for ${largestUnit(ms)}`;
}

/** Between 0 and 1; undefined if the agent does not say. */
export function shareOf({ progress }: Pick<ListedDelegation, "progress">): number | undefined {
  const { done, total } = progress ?? {};
  if (done === undefined || total === undefined || total <= 0) return undefined;
  return Math.min(1, done / total);
}

/** `1m 12s`, for what is watched as it grows. */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return largestUnit(ms);
}

/** How times of the day are written: from 0 to 23 hours, whatever the language of the browser. */
export const HOURS = { hourCycle: "h23" } as const;

/** `Nov 28, 2026, 04:12`: an instant in the reader's time zone. */
export const instantText = (at: string | number): string =>
  new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short", ...HOURS });

/** With a full stop, unless it has an end of its own. */
export const sentence = (text: string): string => (/[.!?…]$/.test(text) ? text : `${text}.`);

export const count = (number: number, one: string, many = `${one}s`): string =>
  `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
