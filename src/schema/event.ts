/**
 * Events: immutable facts, one per move, with the stream id as their id.
 * Limit: what a status carries beside the envelope depends on the status and is not spelled out here.
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
  /** The cursor: resume behind it with `after`. */
  id: z.string(),
  type: z.enum(EVENT_TYPES),
  delegation_id: delegationIdSchema,
  /** From 1, without a gap, for each delegation. */
  seq: z.int().min(1),
  /** An ISO 8601 instant. */
  at: instantSchema,
  /** Where the delegation stands after it. */
  state: stateSchema,
  target: z.string(),
  delegator: principalSchema,
  context_id: z.string(),
  /** What happened, for example `leased`, `progress`, `artifact`; what belongs to it stands beside it. */
  status: z.string().optional(),
});
/** One immutable fact about a delegation; an unknown `status` is one of a later version. */
export type DelegationEvent = z.infer<typeof eventSchema>;

/** The first frame of a stream that was opened without a cursor. */
export const snapshotEventSchema = z.looseObject({
  id: z.string(),
  type: z.literal("DELEGATION_SNAPSHOT"),
  delegation_id: delegationIdSchema,
  delegation: delegationSchema,
});

/** What follows is what is still kept; older events are gone. */
export const resetEventSchema = z.looseObject({ id: z.string(), type: z.literal("RESET") });

export const streamEventSchema = z.union([eventSchema, snapshotEventSchema, resetEventSchema]);
/** What a watcher gets: events, a snapshot first where there is no cursor, `RESET` where older ones are gone. */
export type StreamEvent = z.infer<typeof streamEventSchema>;

export const eventPageSchema = z.strictObject({ events: z.array(streamEventSchema), cursor: z.string() });
