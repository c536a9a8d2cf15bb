/** The story of a delegation: each event as a line in words, with local time and the time since the line before. */
import { budgetText } from "../../client/budget-text.ts";
import { durationText, largestUnit } from "../../client/words.ts";
import { textOf } from "../../schema/a2a.ts";
import { isBudgetQuestion } from "../../schema/budget-question.ts";
import type { DelegationError, Progress } from "../../schema/delegation.ts";
import type {
  AnsweredEvent,
  ArtifactEvent,
  DelegationEvent,
  FailedEvent,
  SentEvent,
  StatusEvent,
  VotedEvent,
} from "../../schema/event.ts";
import { artifactText } from "./artifact-line.ts";
import { childrenText, contentText, wayText } from "./event-line.ts";
import { oneLine, type Painter, progressText } from "./output.ts";
import { actionsText, questionText } from "./questions.ts";
import { cutTo, wrapText } from "./text.ts";
import { localTime } from "./time.ts";
import { missingText } from "./votes.ts";

const GAP_WIDTH = "59 min later".length;
const SHORTEST_GAP_MS = 1_000;
/** In fewer columns, what happened needs the room of the time since the line before. */
const NARROW = 60;
/** Why an attempt did not succeed is as much worth as why the delegation failed. */
const WITH_REASON: ReadonlySet<string> = new Set(["retrying", "released"]);

/**
 * Turns events into lines, one after the other. `width`: the longest line; `wrap`: where the reason of a failure continues
 * on the next line, which is not cut; `files`: those of the task.
 */
export class Story {
  readonly #paint: Painter;
  readonly #width: number;
  readonly #wrap: number;
  readonly #files: string;
  #startedAt: number | undefined;
  #lastAt: number | undefined;
  #day = "";

  constructor(paint: Painter, { width, wrap, files }: { width: number; wrap: number; files: string }) {
    this.#paint = paint;
    this.#wrap = wrap;
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
    const head = this.#width < NARROW ? `${time}  ` : `${time}  ${later.padStart(GAP_WIDTH)}  `;
    const words = oneLine(wordsOf(event, at - this.#startedAt, this.#files));
    const parts =
      event.type === "DELEGATION_FAILED" ||
      (event.type === "DELEGATION_STATUS" && WITH_REASON.has(event.status))
        ? wrapText(words, this.#wrap - head.length).split("\n")
        : [cutTo(words, this.#width - head.length)];
    const color = colorOf(event, this.#paint);
    const lines = parts.map(
      (part, n) => (n === 0 ? this.#paint.dim(head) : " ".repeat(head.length)) + color(part),
    );
    if (day === this.#day) return lines;
    this.#day = day;
    return [this.#paint.bold(`${day} (${zone})`), ...lines];
  }
}

function colorOf({ type, status }: DelegationEvent, { green, red, yellow }: Painter) {
  if (type === "DELEGATION_COMPLETE") return green;
  if (type === "DELEGATION_FAILED" || status === "lease_expired" || status === "retrying") return red;
  return status === "interrupted" ? yellow : (text: string) => text;
}

/** `sinceStartMs`: how long after it was delegated; `files` came with its task. May have control characters. */
export function wordsOf(event: DelegationEvent, sinceStartMs: number, files = ""): string {
  switch (event.type) {
    case "DELEGATION_SENT":
      return sentWords(event, files);
    case "DELEGATION_STATUS":
      return statusWords(event);
    case "DELEGATION_COMPLETE":
      return `completed${tookWords(event, sinceStartMs)}${event.response_preview === undefined ? "" : `: ${quoted(event.response_preview)}`}`;
    case "DELEGATION_FAILED":
      return `${event.state}${tookWords(event, sinceStartMs)}${endText(event)}`;
    case "UNKNOWN":
      return String(event.event.status ?? event.event.type);
  }
}

function statusWords(event: StatusEvent): string {
  switch (event.status) {
    case "leased":
      return `picked up by ${event.worker_id}${event.attempt > 1 ? `, attempt ${event.attempt}` : ""}`;
    case "reclaimed":
      return `${event.worker_id} is back and goes on`;
    case "progress":
      return `progress: ${stepText(event.progress)}`;
    case "artifact":
      return `sent the artifact ${sentText(event)}`;
    case "interrupted":
      return `${isBudgetQuestion(event.interrupt.id) ? "the broker" : event.target} asked: ${quoted(questionText(event.interrupt))}${actionsText(event.interrupt)}`;
    case "parked":
      return `${event.target} no longer waits; the answer starts it again`;
    case "voted":
      return voteWords(event);
    case "answered":
      return answerWords(event);
    case "message":
      return `follow-up by ${event.by}: ${quoted(textOf(event.message))}`;
    case "released":
      return `given back by the worker${event.reason === undefined ? "" : `: ${event.reason}`}${againWords(event)}`;
    case "broker_away":
      return `the broker was away; the worker has time until ${timeOfDay(event.expires_at)}`;
    case "over_budget":
      return `used more than its budget: ${budgetText(event.budget)}`;
    case "awaiting":
      return `waits for ${childrenText(event.awaits)}`;
    case "resumed":
      return event.time_limit
        ? "no longer waits for its children: the time is over"
        : "its children have ended";
    case "admitted":
      return "what was before it in its conversation has ended";
    case "lease_expired":
      return `worker gave no sign of life${againWords(event)}`;
    case "retrying":
      return `the attempt failed${againWords(event)}${errorText(event.error)}`;
  }
}

const againWords = ({ retry_at }: { readonly retry_at?: string | undefined }): string =>
  retry_at === undefined ? "" : `; again not before ${timeOfDay(retry_at)}`;

const tookWords = ({ attempt }: { readonly attempt: number }, ms: number): string =>
  ` after ${durationText(ms)}${attempt > 1 ? ` in attempt ${attempt}` : ""}`;

/** The body of one that was replaced since is not stored any more. */
function sentText({ artifact, artifacts = [] }: ArtifactEvent): string {
  const sent = artifact === undefined ? artifacts : [artifact];
  return sent
    .map((one) =>
      "superseded" in one || one.parts.length === 0 ? (nameOf(one) ?? one.artifactId) : artifactText(one),
    )
    .join(", ");
}

const nameOf = (artifact: object): string | undefined =>
  "name" in artifact && typeof artifact.name === "string" ? artifact.name : undefined;

function sentWords(event: SentEvent, files: string): string {
  const { delegator, target, not_before_at, behind, task_preview } = event;
  const after = behind === undefined ? "" : `, after ${behind} of its conversation`;
  const when = not_before_at === undefined ? after : `, to start not before ${timeOfDay(not_before_at)}`;
  return `${delegator} delegated it to ${target}${when}${files === "" ? "" : `, with ${files}`}: ${quoted(task_preview)}`;
}

function answerWords(event: AnsweredEvent): string {
  const { by, via, auto, votes = [] } = event;
  const what = contentText(event);
  const how = wayText(via);
  const others = votes.length > 1 ? `; approved by ${votes.map((vote) => vote.by).join(", ")}` : "";
  return `${by} answered${auto ? " in advance" : ""}${what && `: ${what}`}${others}${how && ` (${how})`}`;
}

function voteWords(event: VotedEvent): string {
  const { by, via, auto, votes, needed, voided } = event;
  const what = contentText(event);
  const how = wayText(via);
  const lost = voided ? `; no longer counts: ${voided.join(", ")}` : "";
  return `${by} voted${auto ? " in advance" : ""}: ${what && `${what}, `}${votes.length} of ${needed}${lost}${how && ` (${how})`}`;
}

/** The code is left out where it only repeats the state. */
const errorText = ({ code, message }: DelegationError, state = ""): string =>
  `: ${code === state ? "" : `${code}: `}${message}`;

/** What is missing of a question that expired says more than the message, which always is the same. */
function endText(event: FailedEvent): string {
  const missing = missingText(event);
  return missing ? `: ${event.error.code}: ${missing}` : errorText(event.error, event.state);
}

const stepText = (progress: Progress): string =>
  [progress.current_step, progressText(progress)].filter(Boolean).join(": ");

const quoted = (text: string): string => `"${text}"`;
const timeOfDay = (instant: string): string => localTime(instant).split(" ")[1] ?? "";
