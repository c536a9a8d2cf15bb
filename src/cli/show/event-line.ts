/** An event as one line of text. It shows the most useful fields; --json has all. */
import { z } from "zod";
import { interruptSchema, progressSchema } from "../../schema/delegation.ts";
import type { StreamEvent } from "../../schema/event.ts";
import { durationText, oneLine, type Painter } from "./output.ts";
import { questionText } from "./questions.ts";

const optional = <T>(schema: z.ZodType<T>) => schema.optional().catch(undefined);

/** The fields that only some statuses have. */
export const extrasSchema = z.object({
  answer_preview: optional(z.string()),
  attempt: optional(z.number()),
  by: optional(z.string()),
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

const TYPE_WIDTH = "DELEGATION_COMPLETE".length;

export function eventLine(event: StreamEvent, paint: Painter): string {
  if (event.type === "RESET") return paint.yellow("RESET  earlier events are no longer stored");
  const type = event.type.padEnd(TYPE_WIDTH);
  if (event.type === "DELEGATION_SNAPSHOT") {
    const { delegation } = event;
    const text = `${delegation.state}  ${quoted(delegation.task_preview)}`;
    return [time(delegation.updated_at), type, event.delegation_id, delegation.target, text].join("  ");
  }
  const color =
    event.type === "DELEGATION_COMPLETE"
      ? paint.green
      : event.type === "DELEGATION_FAILED"
        ? paint.red
        : event.type === "DELEGATION_SENT"
          ? paint.bold
          : paint.dim;
  const extras = extrasSchema.parse(event);
  const text = summary(event.type, event.status ?? "", event.state, extras);
  const target = oneLine(event.target);
  return [paint.dim(time(event.at)), color(type), event.delegation_id, target, text].join("  ");
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
    parts.push(oneLine(status));
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
function answered({ by, decision, answer_preview, redacted }: Extras) {
  return [
    by && `by ${oneLine(by)}`,
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

/** The time of day in UTC. */
function time(instant: string): string {
  return instant.slice(11, 23);
}
