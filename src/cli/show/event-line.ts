/** An event as one line of text. It shows the most useful fields; --json has all. */
import * as z from "zod";
import { durationText } from "../../client/words.ts";
import { type Delegation, interruptSchema, progressSchema } from "../../schema/delegation.ts";
import { shortIds } from "../input/short-id.ts";
import type { WatchedEvent } from "../watch-questions.ts";
import { oneLine, type Painter, stateText } from "./output.ts";
import { questionText } from "./questions.ts";
import { cutTo, displayWidth } from "./text.ts";
import { localTime } from "./time.ts";

const optional = <T>(schema: z.ZodType<T>) => schema.optional().catch(undefined);

/** The fields that only some statuses have. */
export const extrasSchema = z.object({
  answer_preview: optional(z.string()),
  attempt: optional(z.number()),
  by: optional(z.string()),
  auto: optional(z.boolean()),
  decision: optional(z.string()),
  duration_ms: optional(z.number()),
  error: optional(z.object({ code: z.string(), message: z.string() })),
  interrupt: optional(interruptSchema),
  // Not strict: a newer broker may send more.
  progress: optional(z.object(progressSchema.shape)),
  response_preview: optional(z.string()),
  retry_at: optional(z.string()),
  task_preview: optional(z.string()),
  reason: optional(z.string()),
  redacted: optional(z.boolean()),
});
type Extras = z.infer<typeof extrasSchema>;

/** Local time, short id, agent and what happened. `width`: the longest line, at which its end is cut. */
export function eventLine(event: WatchedEvent, paint: Painter, width = Number.POSITIVE_INFINITY): string {
  if (event.type === "RESET") return paint.yellow("earlier events are no longer stored");
  const isSnapshot = event.type === "DELEGATION_SNAPSHOT";
  const { target, at } = isSnapshot
    ? { target: event.delegation.target, at: event.delegation.updated_at }
    : event;
  const id = shortIds([event.delegation_id]).get(event.delegation_id) ?? "";
  const head = [time(at), id, oneLine(target), ""].join("  ");
  const words = isSnapshot
    ? snapshotWords(event.delegation)
    : summary(event.type, event.status ?? "", event.state, extrasSchema.parse(event));
  const text = cutTo(words, Math.max(1, width - displayWidth(head)));
  return paint.dim(head) + colorOf(event, paint)(text);
}

/** With the open question, or else the task. */
const snapshotWords = ({ state, interrupt, task_preview }: Delegation): string =>
  `${stateText(state)} ${quoted((interrupt && questionText(interrupt)) || task_preview)}`;

function colorOf({ type, ...event }: WatchedEvent, { green, red, yellow, bold }: Painter) {
  if (type === "DELEGATION_COMPLETE") return green;
  if (type === "DELEGATION_FAILED") return red;
  if ("status" in event && event.status === "interrupted") return yellow;
  return type === "DELEGATION_SENT" ? bold : (text: string) => text;
}

function summary(type: string, status: string, state: string, extras: Extras): string {
  const { attempt, duration_ms, error, progress } = extras;
  const parts: (string | undefined | false)[] = [];
  if (type === "DELEGATION_COMPLETE") {
    parts.push("completed", duration_ms !== undefined && `in ${durationText(duration_ms)}`);
    parts.push(extras.response_preview && quoted(extras.response_preview));
  } else if (type === "DELEGATION_FAILED") {
    parts.push(state, error && reason(error, state));
  } else {
    parts.push(status === "interrupted" ? "asks" : oneLine(status));
    parts.push(attempt !== undefined && attempt > 1 && `attempt ${attempt}`);
    parts.push(progress?.done !== undefined && `${progress.done}/${progress.total ?? "?"}`);
    parts.push(progress?.message && quoted(progress.message));
    parts.push(extras.interrupt && quoted(questionText(extras.interrupt)));
    if (status === "answered") parts.push(...answered(extras));
    parts.push(extras.retry_at && `not before ${time(extras.retry_at)}`);
    parts.push(error && `(${reason(error, state)})`);
    parts.push(extras.reason && `(${oneLine(extras.reason, 100)})`);
    parts.push(extras.task_preview && quoted(extras.task_preview));
  }
  return parts.filter(Boolean).join(" ");
}

/** The author of an answer, and the answer. */
function answered({ by, auto, decision, answer_preview, redacted }: Extras) {
  return [
    by && `by ${oneLine(by)}${auto ? " in advance" : ""}`,
    decision && oneLine(decision),
    answer_preview && quoted(answer_preview),
    redacted && "(secret)",
  ];
}

function reason({ code, message }: { code: string; message: string }, state: string): string {
  return (code === state ? "" : `${code}: `) + oneLine(message, 100);
}

function quoted(text: string): string {
  return `"${oneLine(text, 60)}"`;
}

/** The local time of day. */
const time = (instant: string): string => localTime(instant).split(" ")[1] ?? instant;
