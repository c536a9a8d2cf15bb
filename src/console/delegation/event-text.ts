/** The words for an event: what happened, when, and after which pause. */
import * as z from "zod";
import { changesByRequestSchema } from "../../schema/answered.ts";
import { isBudgetQuestion } from "../../schema/budget-question.ts";
import { changeTexts } from "../../schema/change-text.ts";
import { progressSchema } from "../../schema/delegation.ts";
import type { AwaitingEvent, DelegationEvent, StreamEvent } from "../../schema/event.ts";
import { wayWords } from "../ui/way-words.ts";
import { count, HOURS, largestUnit, nameOf, STATE_WORDS, stepOf } from "../ui/words.ts";
import { clockText } from "./waterfall/axis.ts";

const optional = <T>(schema: z.ZodType<T>) => schema.optional().catch(undefined);
const detailsSchema = z.object({
  by: optional(z.string()),
  decision: optional(z.string()),
  via: optional(z.string()),
  changes: optional(changesByRequestSchema),
  auto: optional(z.boolean()),
  votes: optional(z.array(z.object({ by: z.string() }))),
  needed: optional(z.number()),
  voided: optional(z.array(z.string())),
  attempt: optional(z.number()),
  worker_id: optional(z.string()),
  reason: optional(z.string()),
  retry_at: optional(z.string()),
  progress: optional(progressSchema),
  error: optional(z.object({ code: z.string(), message: z.string() })),
  artifact: optional(z.object({ artifactId: z.string(), name: optional(z.string()) })),
});

/** What happened, by the status of the event. */
const STATUS_WORDS: Readonly<Record<string, string>> = {
  queued: "delegated",
  delayed: "delegated for later",
  leased: "a worker took it",
  reclaimed: "the same worker has it again",
  progress: "progress",
  artifact: "artifact",
  interrupted: "the agent asked",
  parked: "the worker no longer waits; the answer starts it again",
  answered: "answered",
  voted: "approved, and others must, too",
  message: "follow-up",
  released: "the worker gave it back",
  over_budget: "more was used than its budget; the worker has some time to end",
  broker_away: "the broker was away; the worker still holds it",
  lease_expired: "the worker gave no sign of life",
  retrying: "the attempt failed",
  resumed: "queued again: its parts have ended",
  admitted: "now the first in its conversation",
};

/** `a worker took it · attempt 2 · worker-1` */
export function eventText(event: DelegationEvent): string {
  const details = detailsSchema.parse(event);
  const { by, via, auto, decision, changes, attempt = 1, votes = [], needed, voided } = details;
  const { worker_id, reason, retry_at, progress, error, artifact } = details;
  if (event.status === "interrupted" && isBudgetQuestion(event.interrupt.id))
    return "the broker asked for a larger budget";
  if (event.status === "awaiting") return awaitingText(event.awaits);
  if (event.status === "resumed" && event.time_limit)
    return "queued again: its time to wait for parts is over";
  const ended = event.type === "DELEGATION_COMPLETE" || event.type === "DELEGATION_FAILED";
  const what = ended
    ? STATE_WORDS[event.state]
    : (STATUS_WORDS[event.status ?? ""] ?? event.status ?? event.type);
  return [
    what,
    attempt > 1 && `attempt ${attempt}`,
    by && `by ${nameOf(by)}`,
    needed !== undefined && `${votes.length} of ${count(needed, "approval")}`,
    needed === undefined &&
      votes.length > 1 &&
      `approved by ${votes.map((vote) => nameOf(vote.by)).join(", ")}`,
    voided && `void: the approval of ${voided.map(nameOf).join(", ")}`,
    decision && event.status !== "voted" && (auto ? `${decision} in advance` : decision),
    ...changeTexts(changes),
    via && !auto && wayWords(via),
    worker_id,
    progress && stepOf({ progress }),
    artifact && (artifact.name ?? artifact.artifactId),
    error && `${error.code}: ${error.message}`,
    reason,
    retry_at && `again at ${new Date(retry_at).toLocaleTimeString([], HOURS)}`,
  ]
    .filter(Boolean)
    .join(" · ");
}

/** `the worker gave it back until 2 of 3 parts have ended`. */
const awaitingText = ({ count: all, left }: Pick<AwaitingEvent["awaits"], "count" | "left">): string => {
  const some = left === all ? "" : `${left} of `;
  return `the worker gave it back until ${some}${count(all, "part")} ${left === 1 ? "has" : "have"} ended`;
};

/** `progress 12 times, last: 7/200 compiling`. */
export function runText(event: DelegationEvent, times: number): string {
  const [what, ...last] = eventText(event).split(" · ");
  return times === 1
    ? eventText(event)
    : `${what} ${times.toLocaleString("en")} times, last: ${last.join(" · ")}`;
}

/** How an attempt ended after which there may be another one, by the status of the event. */
const ENDED_ATTEMPT_WORDS: Readonly<Record<string, string>> = {
  released: "the worker gave it back",
  lease_expired: "the worker gave no sign of life",
  retrying: "failed",
};

/** How the last attempt ended, if the delegation now waits for another one; otherwise empty. */
export function lastAttemptText(events: readonly StreamEvent[]): string {
  const event = events.findLast(({ status }) => status !== "message");
  const words = ENDED_ATTEMPT_WORDS[String(event?.status)];
  if (words === undefined) return "";
  const { error, reason } = detailsSchema.parse(event);
  return [words, error?.message || error?.code, reason].filter(Boolean).join(": ");
}

/** The CSS class that colours the event. */
export function toneOf(event: DelegationEvent): string {
  if (event.type === "DELEGATION_COMPLETE") return "completed";
  if (event.type === "DELEGATION_FAILED") return event.state === "canceled" ? "canceled" : "failed";
  if (event.status === "interrupted") return "asks";
  if (event.status === "retrying" || event.status === "lease_expired") return "failed";
  return event.status === "leased" || event.status === "reclaimed" ? "working" : "";
}

const MINUTE_MS = 60_000;
/** Events that are together within so long have tenths of a second; within a second, thousandths. */
const TENTHS_MS = MINUTE_MS;
const THOUSANDTHS_MS = 1_000;

/** The time since the first event: `4:07`, `1:02:07`; of events that are all within `lengthMs`: `0:04.2`, `0:00.042`. */
export const offsetText = (ms: number, lengthMs: number): string => {
  const positive = Math.max(0, ms);
  const digits = lengthMs < THOUSANDTHS_MS ? 3 : lengthMs < TENTHS_MS ? 1 : 0;
  const part = String(Math.floor(positive) % 1000)
    .padStart(3, "0")
    .slice(0, digits);
  return `${clockText(positive)}${part && `.${part}`}`;
};

/** The length of the pause before an event; empty if it was short. */
export const pauseText = (ms: number): string => (ms >= MINUTE_MS ? largestUnit(ms) : "");
