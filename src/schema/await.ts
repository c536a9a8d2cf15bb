/** The wait of a delegation for its children: what its holder asks for, and what the next holder gets. */
import * as z from "zod";
import { awaitsSchema, delegationSchema, stateSchema } from "./delegation.ts";
import { LIMITS } from "./limits.ts";
import { checkpointSchema, delegationIdSchema } from "./values.ts";

const MOST = LIMITS.awaited.value;

/** Gives the work back until children of it have ended. */
export const awaitRequestSchema = z
  .strictObject({
    /** The children, 1 to 1000, each once: delegations whose `parent_id` is this delegation. */
    children: z
      .array(delegationIdSchema)
      .min(1)
      .max(MOST)
      .refine((ids) => new Set(ids).size === ids.length, "must name each child once"),
    /** How many of them must end: `all`, `any`, which is one, or a number of them. Default: `all`. */
    until: z.union([z.enum(["all", "any"]), z.int().min(1).max(MOST)]).default("all"),
    /** How long it waits, 1 second to a year. Default: until its deadline. */
    time_limit_seconds: z.number().min(1).max(31_536_000).optional(),
    /**
     * Which time this run makes this wait, from 1, for a worker that starts over with each lease: if the same wait (these
     * children, and how many must end) timed out that often before, the answer is `time_limit` at once. Default: it waits.
     */
    round: z.int().min(1).max(LIMITS.delegation_events.value).optional(),
    /** Replaces the previous checkpoint; null deletes it. */
    checkpoint: checkpointSchema.nullable().optional(),
  })
  .refine(({ children, until }) => typeof until === "string" || until <= children.length, {
    error: "must be at most the number of children",
    path: ["until"],
  });
/** How many of so many children must end. */
export const neededEnds = (until: AwaitRequest["until"], children: number): number =>
  until === "all" ? children : until === "any" ? 1 : until;

export type AwaitRequest = z.output<typeof awaitRequestSchema>;
export type AwaitInput = z.input<typeof awaitRequestSchema>;

/** The children that a delegation waited for, as they were when the answer was made. */
export const awaitedSchema = z.strictObject({
  /** `ended`: enough of them ended. `time_limit`: the time limit passed first. */
  outcome: z.enum(["ended", "time_limit"]),
  /** The children, in the order of the request. */
  children: z.array(
    z.strictObject({
      /** The child. */
      delegation_id: delegationIdSchema,
      /** Its state, also if its record was deleted since; null: it had no record when its end was counted. */
      state: stateSchema.nullable(),
      /**
       * The child, if it has ended. Absent: read it by its id, because the answer would be too large, or another principal
       * delegated it.
       */
      delegation: delegationSchema.optional(),
    }),
  ),
});
export type Awaited = z.infer<typeof awaitedSchema>;

/** Either the delegation waits and the lease has ended, or the wait was over before and the lease goes on. */
export const awaitResultSchema = z.strictObject({
  /** What it waits for; the lease has ended. */
  awaits: awaitsSchema.optional(),
  /** The children: enough had ended before, or `round` says that the time was over. The lease goes on. */
  awaited: awaitedSchema.optional(),
});
export type AwaitResult = z.infer<typeof awaitResultSchema>;
