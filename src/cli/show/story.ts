/** The story of a delegation: each event as a line in words, with local time and the time since the line before. */
import * as z from "zod";
import { durationText, largestUnit } from "../../client/words.ts";
import { type Artifact, artifactSchema, messageSchema, textOf } from "../../schema/a2a.ts";
import { type DelegationEvent, TERMINAL_EVENT_TYPES } from "../../schema/event.ts";
import { artifactText } from "./artifact-line.ts";
import { extrasSchema } from "./event-line.ts";
import { oneLine, type Painter, progressText } from "./output.ts";
import { questionText } from "./questions.ts";
import { cutTo } from "./text.ts";
import { localTime } from "./time.ts";

const optional = <T>(schema: z.ZodType<T>) => schema.optional().catch(undefined);

const detailsSchema = extrasSchema.extend({
  auto: optional(z.boolean()),
  worker_id: optional(z.string()),
  expires_at: optional(z.string()),
  not_before_at: optional(z.string()),
  artifact: optional(artifactSchema.extend({ parts: artifactSchema.shape.parts.catch([]) })),
  artifacts: optional(z.array(z.unknown())),
  message: optional(messageSchema),
});
type Details = z.infer<typeof detailsSchema>;

const GAP_WIDTH = "59 min later".length;
const SHORTEST_GAP_MS = 1_000;

/** Turns events into lines, one after the other. `width`: the longest line; `files`: those of the task. */
export class Story {
  readonly #paint: Painter;
  readonly #width: number;
  readonly #files: string;
  #startedAt: number | undefined;
  #lastAt: number | undefined;
  #day = "";

  constructor(paint: Painter, width: number, files = "") {
    this.#paint = paint;
    this.#files = files;
    this.#width = width;
  }

  /** Before the first event of each day comes a line with the date and the zone. */
  linesOf(event: DelegationEvent): string[] {
    const at = Date.parse(event.at);
    const gap = this.#lastAt === undefined ? 0 : at - this.#lastAt;
    this.#startedAt ??= at;
    this.#lastAt = at;
    const [day = "", time = "", zone = ""] = localTime(event.at).split(" ");
    const later = gap < SHORTEST_GAP_MS ? "" : `${largestUnit(gap)} later`;
    const head = `${time}  ${later.padStart(GAP_WIDTH)}  `;
    const words = cutTo(
      oneLine(wordsOf(event, at - this.#startedAt, this.#files)),
      this.#width - head.length,
    );
    const line = this.#paint.dim(head) + colorOf(event, this.#paint)(words);
    if (day === this.#day) return [line];
    this.#day = day;
    return [this.#paint.bold(`${day} (${zone})`), line];
  }
}

function colorOf({ type, status }: DelegationEvent, { green, red, yellow }: Painter) {
  if (type === "DELEGATION_COMPLETE") return green;
  if (type === "DELEGATION_FAILED" || status === "lease_expired" || status === "retrying") return red;
  return status === "interrupted" ? yellow : (text: string) => text;
}

/** `sinceStartMs`: how long after it was delegated; `files` came with its task. May have control characters. */
export function wordsOf(event: DelegationEvent, sinceStartMs: number, files = ""): string {
  const details = detailsSchema.parse(event);
  if (TERMINAL_EVENT_TYPES.includes(event.type)) return endWords(event, details, sinceStartMs);
  if (event.type === "DELEGATION_SENT") return sentWords(event, details, files);
  const {
    attempt = 1,
    worker_id,
    by,
    reason,
    progress,
    artifact,
    message,
    interrupt,
    retry_at,
    expires_at,
  } = details;
  const again = retry_at === undefined ? "" : `; again not before ${timeOfDay(retry_at)}`;
  const why = reason === undefined ? "" : `: ${reason}`;
  switch (event.status) {
    case "leased":
      return `picked up by ${worker_id ?? "a worker"}${attempt > 1 ? `, attempt ${attempt}` : ""}`;
    case "reclaimed":
      return `${worker_id ?? "the worker"} is back and goes on`;
    case "progress":
      return `progress: ${progress === undefined ? "" : stepText(progress)}`;
    case "artifact":
      return `sent the artifact ${artifact === undefined ? "" : sentText(artifact)}`;
    case "interrupted":
      return `${event.target} asked${interrupt === undefined ? "" : `: ${quoted(questionText(interrupt))}`}`;
    case "parked":
      return `${event.target} no longer waits; the answer starts it again`;
    case "answered":
      return answerWords(details);
    case "message":
      return `follow-up by ${by ?? event.delegator}${message === undefined ? "" : `: ${quoted(textOf(message))}`}`;
    case "released":
      return `given back by the worker${why}${again}`;
    case "broker_away":
      return `the broker was away; the worker has time until ${expires_at === undefined ? "later" : timeOfDay(expires_at)}`;
    case "lease_expired":
      return `lease expired without a call${again}`;
    case "retrying":
      return `the attempt failed${again}${errorText(details)}`;
    default:
      return `${event.status ?? event.type}${why}`;
  }
}

/** The body of one that was replaced since is not stored any more. */
const sentText = (artifact: Artifact): string =>
  artifact.parts.length === 0 ? (artifact.name ?? artifact.artifactId) : artifactText(artifact);

function sentWords({ delegator, target, status }: DelegationEvent, details: Details, files: string): string {
  const { task_preview = "", not_before_at } = details;
  const delay = not_before_at === undefined ? "later" : `not before ${timeOfDay(not_before_at)}`;
  const when = status === "delayed" ? `, to start ${delay}` : "";
  return `${delegator} delegated it to ${target}${when}${files === "" ? "" : `, with ${files}`}: ${quoted(task_preview)}`;
}

function endWords({ type, state }: DelegationEvent, details: Details, sinceStartMs: number): string {
  const { attempt = 1, by, response_preview } = details;
  const tries = attempt > 1 ? ` in attempt ${attempt}` : "";
  const took = ` after ${durationText(sinceStartMs)}${tries}`;
  if (type === "DELEGATION_COMPLETE")
    return `completed${took}${response_preview === undefined ? "" : `: ${quoted(response_preview)}`}`;
  // The message of a cancel names who canceled.
  const who = by === undefined || details.error ? "" : ` by ${by}`;
  return `${state}${who}${took}${errorText(details, state)}`;
}

function answerWords({ by, auto, decision, answer_preview, redacted }: Details): string {
  const what = [decision, answer_preview && quoted(answer_preview), redacted && "(secret)"].filter(Boolean);
  const who = by === undefined ? "answered" : `${by} answered`;
  return `${who}${auto ? " in advance" : ""}${what.length > 0 ? `: ${what.join(", ")}` : ""}`;
}

/** The code is left out where it only repeats the state. */
function errorText({ error }: Details, state = ""): string {
  if (error === undefined) return "";
  return `: ${error.code === state ? "" : `${error.code}: `}${error.message}`;
}

function stepText(progress: NonNullable<Details["progress"]>): string {
  const { current_step } = progress;
  return [current_step, progressText(progress)].filter(Boolean).join(": ");
}

const quoted = (text: string): string => `"${text}"`;
const timeOfDay = (instant: string): string => localTime(instant).split(" ")[1] ?? "";
