/**
 * Events: immutable facts, one per move; the stream id is the event id. Limit: the further members of each `status` are
 * not in the schema; docs/http.md lists them.
 */
import * as z from "zod";
import { delegationSchema, stateSchema } from "./delegation.ts";
import { delegationIdSchema, instantSchema, principalSchema } from "./values.ts";

export const EVENT_TYPES = [
  "DELEGATION_SENT",
  "DELEGATION_STATUS",
  "DELEGATION_COMPLETE",
  "DELEGATION_FAILED",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];
export const TERMINAL_EVENT_TYPES: readonly string[] = ["DELEGATION_COMPLETE", "DELEGATION_FAILED"];

export const eventSchema = z.looseObject({
  /** The cursor; `after` resumes from it. */
  id: z.string(),
  type: z.enum(EVENT_TYPES),
  delegation_id: delegationIdSchema,
  /** Counts the events of a delegation from 1, without gaps. */
  seq: z.int().min(1),
  /** An ISO 8601 instant. */
  at: instantSchema,
  /** The delegation's state after the event. */
  state: stateSchema,
  target: z.string(),
  delegator: principalSchema,
  context_id: z.string(),
  /** The kind of event, for example `leased`, `progress`, `artifact`; its data is in further fields. */
  status: z.string().optional(),
});
/** One immutable fact about a delegation; an unknown `status` comes from a later version. */
export type DelegationEvent = z.infer<typeof eventSchema>;

/** The first frame of a stream that was opened without a cursor. */
export const snapshotEventSchema = z.looseObject({
  id: z.string(),
  type: z.literal("DELEGATION_SNAPSHOT"),
  delegation_id: delegationIdSchema,
  delegation: delegationSchema,
});

/** Older events are gone; the events that are still stored follow. */
export const resetEventSchema = z.looseObject({ id: z.string(), type: z.literal("RESET") });

export const streamEventSchema = z.union([eventSchema, snapshotEventSchema, resetEventSchema]);
/**
 * An item of a page: an event, a snapshot (first, without a cursor), or `RESET` where older events are gone. An SSE stream
 * also has `CURSOR`, which reports a position alone.
 */
export type StreamEvent = z.infer<typeof streamEventSchema>;

export const eventPageSchema = z.strictObject({ events: z.array(streamEventSchema), cursor: z.string() });
