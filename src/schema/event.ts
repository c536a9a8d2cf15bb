/**
 * Events: immutable facts, one per move; the stream id is the event id. The types and statuses are closed here; what a
 * newer broker adds is read as an `UNKNOWN` event.
 */
import * as z from "zod";
import { artifactSchema, messageSchema } from "./a2a.ts";
import { changesByRequestSchema, ruledAnswerShape, shownAnswerShape } from "./answered.ts";
import { budgetShownSchema } from "./budget.ts";
import {
  awaitsSchema,
  delegationErrorSchema,
  delegationSchema,
  interruptSchema,
  progressSchema,
  stateSchema,
} from "./delegation.ts";
import { jsonObjectSchema } from "./json-object.ts";
import { usageSoFarSchema } from "./usage.ts";
import { agentNameSchema, delegationIdSchema, instantSchema, principalSchema } from "./values.ts";
import { voteSchema } from "./votes.ts";

export const EVENT_TYPES = [
  "DELEGATION_SENT",
  "DELEGATION_STATUS",
  "DELEGATION_COMPLETE",
  "DELEGATION_FAILED",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];
export const TERMINAL_EVENT_TYPES: readonly string[] = ["DELEGATION_COMPLETE", "DELEGATION_FAILED"];

/** First, so that it is first in JSON. */
const head = {
  /** The cursor; `after` resumes from it. */
  id: z.string(),
};
/** What every event says, in every version. */
const envelope = {
  /** The delegation that the event is about. */
  delegation_id: delegationIdSchema,
  /** Counts the events of a delegation from 1, without gaps. */
  seq: z.int().min(1),
  /** When it happened. */
  at: instantSchema,
  /** The delegation's state after the event. */
  state: stateSchema,
  /** The agent's name. */
  target: agentNameSchema,
  /** The principal that delegated it, such as `caller:alice`. */
  delegator: principalSchema,
  /** The conversation that the delegation belongs to. */
  context_id: z.string(),
};
const common = {
  ...envelope,
  /** Only of a delegation that has a parent: the first delegation above it, which has none. */
  root_id: delegationIdSchema.optional(),
  /** What its attempts have used so far, after a report; absent: nothing new was reported. */
  usage: usageSoFarSchema.optional(),
  /** True: the artifacts of earlier attempts are gone, so that the next worker starts from scratch. */
  artifacts_dropped: z.literal(true).optional(),
};

/** So that `event.status` narrows every event, also those that have none. */
interface NoStatus {
  readonly status?: undefined;
}

/** The number of the attempt, from 1. */
const attempt = z.int().min(1);
const status = {
  ...head,
  /** `status` says what happened. */
  type: z.literal("DELEGATION_STATUS"),
  ...common,
};

/** A piece of output that is not stored any more. */
export const supersededArtifactSchema = z.object({
  /** The id of the artifact. */
  artifactId: z.string(),
  /** The piece was replaced or dropped since, so it is not stored any more. */
  superseded: z.literal(true),
});
const sentArtifactSchema = z.union([supersededArtifactSchema, artifactSchema]);

/** Pieces of output that come with an event. */
const pieces = {
  /** The piece, or `superseded`. */
  artifact: sentArtifactSchema.optional(),
  /** The pieces, if there are several. */
  artifacts: z.array(sentArtifactSchema).optional(),
  /** Whether the piece continues the artifact with its id. */
  append: z.boolean().optional(),
  /** Whether it is the artifact's last piece. */
  last_chunk: z.boolean().optional(),
};

/** The ticket is kept for one worker. */
const kept = {
  /** Until `kept_until`, only this worker gets the delegation; absent: any worker of the agent. */
  kept_for: z.string().optional(),
  /** Until then, only the worker `kept_for` gets the delegation. */
  kept_until: instantSchema.optional(),
};

export const sentEventSchema = z.object({
  ...head,
  /** The delegation was accepted. */
  type: z.literal("DELEGATION_SENT"),
  ...common,
  /** `delayed`: no worker gets it before `not_before_at`. */
  status: z.enum(["queued", "delayed"]),
  /** 0 to 9; higher goes first. */
  priority: z.int().min(0).max(9),
  /** The first 100 bytes of the task. */
  task_preview: z.string(),
  /** The delegation that it is a part of. */
  parent_id: delegationIdSchema.optional(),
  /** Only of `delayed`: no worker gets it before this instant. */
  not_before_at: instantSchema.optional(),
  /** The delegation of the same conversation whose end it waits for; absent: it waits for a worker only. */
  behind: delegationIdSchema.optional(),
  ...kept,
});
/** The first event of a delegation: the broker accepted it. */
export type SentEvent = z.infer<typeof sentEventSchema>;

export const leasedEventSchema = z.object({
  ...status,
  /** `reclaimed`: the worker whose lease had expired has it again. */
  status: z.enum(["leased", "reclaimed"]),
  /** The number of the attempt, from 1. */
  attempt,
  /** The worker's name for itself. */
  worker_id: z.string(),
  /** When the lease expires, unless the worker calls before. */
  expires_at: instantSchema,
});
/** A worker has the delegation. */
export type LeasedEvent = z.infer<typeof leasedEventSchema>;

export const progressEventSchema = z.object({
  ...status,
  /** The agent reports progress. */
  status: z.literal("progress"),
  /** The newest progress. */
  progress: progressSchema,
  ...pieces,
});
/** The agent reports progress. */
export type ProgressEvent = z.infer<typeof progressEventSchema>;

export const artifactEventSchema = z.object({
  ...status,
  /** The agent sent a piece of output. */
  status: z.literal("artifact"),
  ...pieces,
  /** Chosen by the worker: a repeat of the same piece has the same one. */
  chunk_id: z.string().optional(),
});
/** The agent sent a piece of output. */
export type ArtifactEvent = z.infer<typeof artifactEventSchema>;

export const interruptedEventSchema = z.object({
  ...status,
  /** The agent asks. */
  status: z.literal("interrupted"),
  /** The question. */
  interrupt: interruptSchema,
  /** True: the broker answers it at once: it was approved in advance, or there is a rule for it. */
  auto: z.literal(true).optional(),
  /** True: the broker was to answer this question at once, as an event before says, and could not: it needs an answer. */
  again: z.literal(true).optional(),
  /** The worker waits for the answer with its lease until this instant; absent: it does not wait. */
  expires_at: instantSchema.optional(),
  ...pieces,
});
/** The agent asks, and needs an answer to continue. */
export type InterruptedEvent = z.infer<typeof interruptedEventSchema>;

export const parkedEventSchema = z.object({
  ...status,
  /** The worker no longer waits for the answer. */
  status: z.literal("parked"),
});
/** The worker no longer waits for the answer, which any worker of the agent gets. */
export type ParkedEvent = z.infer<typeof parkedEventSchema>;

export const answeredEventSchema = z.object({
  ...status,
  /** The question was answered. */
  status: z.literal("answered"),
  /** The id of the question. */
  interrupt_id: z.string(),
  /** Who answered. */
  by: principalSchema,
  /** By which way: `console`, `rest`, `mcp`, `a2a`, `ag-ui`, `auto`, `rule` or `link`, or one of a later version. */
  via: z.string().optional(),
  /** True: the broker answered, because this principal had approved it in advance, or has a rule for it. */
  auto: z.literal(true).optional(),
  /** Everybody who approved this, oldest first; absent: the question needed one answer. */
  votes: z.array(voteSchema).optional(),
  /** What the answer changed in the arguments of the proposed actions, by `request_id`. */
  changes: changesByRequestSchema.optional(),
  /** The answers, by `request_id`. */
  answers: z.record(z.string(), z.object(ruledAnswerShape)),
  ...ruledAnswerShape,
  ...kept,
});
/** The question was answered. If it was a single one, the answer is also at the top. */
export type AnsweredEvent = z.infer<typeof answeredEventSchema>;

export const votedEventSchema = z.object({
  ...status,
  /** Somebody approved, and the question needs more approvals. */
  status: z.literal("voted"),
  /** The id of the question. */
  interrupt_id: z.string(),
  /** Who approved. */
  by: principalSchema,
  /** By which way, as in the event `answered`. */
  via: answeredEventSchema.shape.via,
  /** True: the broker approved in this principal's name, by a rule or in advance. */
  auto: z.literal(true).optional(),
  /** How many people must give this approval. */
  needed: z.int().min(1),
  /** Who has given it, oldest first. */
  votes: z.array(voteSchema),
  /** Whose earlier approvals of something else it voids; absent: nobody's. */
  voided: z.array(principalSchema).optional(),
  /** What the approval changes in the arguments of the proposed actions, by `request_id`. */
  changes: changesByRequestSchema.optional(),
  /** What is approved, by `request_id`. */
  answers: answeredEventSchema.shape.answers,
  ...ruledAnswerShape,
});
/** One of several people approved; the question stays open. If it is a single one, the answer is also at the top. */
export type VotedEvent = z.infer<typeof votedEventSchema>;

export const messageEventSchema = z.object({
  ...status,
  /** The delegator sent a follow-up. */
  status: z.literal("message"),
  /** The follow-up. */
  message: messageSchema,
  /** Who sent it. */
  by: principalSchema,
});
/** A follow-up for the agent. */
export type MessageEvent = z.infer<typeof messageEventSchema>;

export const returnedEventSchema = z.object({
  ...status,
  /** `released`: the worker gave it back. `lease_expired`: the worker did not call in time. */
  status: z.enum(["released", "lease_expired"]),
  /** The worker's reason. */
  reason: z.string().optional(),
  /** The number of the next attempt, from 1. */
  attempt: attempt.optional(),
  /** No worker gets it before this instant. */
  retry_at: instantSchema.optional(),
});
/** The delegation waits for another worker. */
export type ReturnedEvent = z.infer<typeof returnedEventSchema>;

export const retryingEventSchema = z.object({
  ...status,
  /** The attempt failed, and there is another one. */
  status: z.literal("retrying"),
  /** How the attempt failed. */
  error: delegationErrorSchema,
  /** The number of the next attempt, from 1. */
  attempt,
  /** No worker gets it before this instant. */
  retry_at: instantSchema.optional(),
});
/** An attempt failed, and there is another one. */
export type RetryingEvent = z.infer<typeof retryingEventSchema>;

export const awaitingEventSchema = z.object({
  ...status,
  /** The worker gave it back until children of it have ended. */
  status: z.literal("awaiting"),
  /** What it waits for. */
  awaits: z.object({
    /** The first 20 of the children whose ends it waits for. */
    children: awaitsSchema.shape.children,
    /** How many children there are. */
    count: z.int().min(1),
    /** How many of them must still end. */
    left: awaitsSchema.shape.left,
    /** It no longer waits at this instant; at the latest, its deadline. */
    expires_at: instantSchema,
  }),
});
/** The delegation waits for its children, and no worker has it. */
export type AwaitingEvent = z.infer<typeof awaitingEventSchema>;

export const resumedEventSchema = z.object({
  ...status,
  /** It no longer waits for its children. */
  status: z.literal("resumed"),
  /** True: the time was over before enough of them had ended. */
  time_limit: z.literal(true).optional(),
});
/** The delegation waited for its children, and is queued again. */
export type ResumedEvent = z.infer<typeof resumedEventSchema>;

export const overBudgetEventSchema = z.object({
  ...status,
  /** More was used than its budget allows. */
  status: z.literal("over_budget"),
  /** The budget, and what was used. Its `stops_at` is when the delegation fails or the broker asks. */
  budget: budgetShownSchema,
});
/** The delegation and everything under it used more than its budget, and its worker has some time left to end. */
export type OverBudgetEvent = z.infer<typeof overBudgetEventSchema>;

export const admittedEventSchema = z.object({
  ...status,
  /** What was before it in its conversation has ended, and it waits for a worker. */
  status: z.literal("admitted"),
  ...kept,
});
/** The delegation is now the first in the line of its conversation, and waits for a worker. */
export type AdmittedEvent = z.infer<typeof admittedEventSchema>;

export const brokerAwayEventSchema = z.object({
  ...status,
  /** The broker was away, and the lease got more time. */
  status: z.literal("broker_away"),
  /** The number of the attempt, from 1. */
  attempt,
  /** When the outage of the broker ended. */
  until: instantSchema,
  /** When the lease expires, unless the worker calls before. */
  expires_at: instantSchema,
});
/** The broker was away, so the lease got more time. */
export type BrokerAwayEvent = z.infer<typeof brokerAwayEventSchema>;

export const completeEventSchema = z.object({
  ...head,
  /** The delegation completed. */
  type: z.literal("DELEGATION_COMPLETE"),
  ...common,
  /** The delegation's state after the event. */
  state: z.literal("completed"),
  /** The beginning of the reply. */
  response_preview: z.string().optional(),
  /** The milliseconds since it was accepted. */
  duration_ms: z.int().min(0),
  /** The number of the attempt, from 1. */
  attempt,
});
/** The last event of a delegation that completed. */
export type CompleteEvent = z.infer<typeof completeEventSchema> & NoStatus;

export const failedEventSchema = z.object({
  ...head,
  /** The delegation ended otherwise. */
  type: z.literal("DELEGATION_FAILED"),
  ...common,
  /** The delegation's state after the event. */
  state: z.enum(["failed", "canceled", "rejected"]),
  /** Why it did not complete. */
  error: delegationErrorSchema,
  /** Who canceled it, or denied it a larger budget. */
  by: principalSchema.optional(),
  /** The id of the question that expired unanswered, or whose answer denied a larger budget. */
  interrupt_id: z.string().optional(),
  /** How many approvals the question that expired needed; absent: it needed one answer. */
  needed: z.int().min(1).optional(),
  /** Who had approved the question that expired. */
  votes: z.array(voteSchema).optional(),
  /** By which way a larger budget was denied, as in the event `answered`. */
  via: answeredEventSchema.shape.via,
  /** The answer that denied a larger budget, by `request_id`. */
  answers: answeredEventSchema.shape.answers.optional(),
  ...shownAnswerShape,
  /** The number of the attempt, from 1. */
  attempt,
});
/** The last event of a delegation that did not complete. */
export type FailedEvent = z.infer<typeof failedEventSchema> & NoStatus;

export const statusEventSchema = z.discriminatedUnion("status", [
  leasedEventSchema,
  progressEventSchema,
  artifactEventSchema,
  interruptedEventSchema,
  parkedEventSchema,
  votedEventSchema,
  answeredEventSchema,
  messageEventSchema,
  returnedEventSchema,
  retryingEventSchema,
  awaitingEventSchema,
  resumedEventSchema,
  overBudgetEventSchema,
  admittedEventSchema,
  brokerAwayEventSchema,
]);
/** What happens between the first event and the last; `status` says what. */
export type StatusEvent = z.infer<typeof statusEventSchema>;

export const eventSchema = z.discriminatedUnion("type", [
  sentEventSchema,
  statusEventSchema,
  completeEventSchema,
  failedEventSchema,
]);

export const unknownEventSchema = z.object({
  ...head,
  type: z.literal("UNKNOWN"),
  ...envelope,
  /** The event as the broker sent it. */
  event: jsonObjectSchema,
});
/** An event of a newer broker, whose type or status this version does not know. Only the library has it. */
export type UnknownEvent = z.infer<typeof unknownEventSchema> & NoStatus;

/** One immutable fact about a delegation. `type` or `status` says what its other members are. */
export type DelegationEvent = SentEvent | StatusEvent | CompleteEvent | FailedEvent | UnknownEvent;

export const snapshotEventSchema = z.object({
  ...head,
  /** The delegation as it was at `id`. */
  type: z.literal("DELEGATION_SNAPSHOT"),
  /** The delegation that the snapshot is of. */
  delegation_id: delegationIdSchema,
  /** The delegation, with everything up to `id`. */
  delegation: delegationSchema,
});
/** The first frame of a delegation's stream that was opened without a cursor. */
export type SnapshotEvent = z.infer<typeof snapshotEventSchema> & NoStatus;

export const resetEventSchema = z.object({
  ...head,
  /** Events before this position are gone. */
  type: z.literal("RESET"),
});
/** Older events are gone; the events that are still stored follow. */
export type ResetEvent = z.infer<typeof resetEventSchema> & NoStatus;

export const streamEventSchema = z.discriminatedUnion("type", [
  ...eventSchema.options,
  snapshotEventSchema,
  resetEventSchema,
]);

/**
 * An item of a page: an event, a snapshot (first, without a cursor), or `RESET` where older events are gone. An SSE stream
 * also has `CURSOR`, which reports a position alone.
 */
export type StreamEvent = DelegationEvent | SnapshotEvent | ResetEvent;

/** A page of events. */
export const eventPageSchema = z.strictObject({
  /** The events after the cursor, oldest first. */
  events: z.array(streamEventSchema),
  /** Send it as `after` to continue. */
  cursor: z.string(),
});
