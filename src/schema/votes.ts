/**
 * How many people must approve what an agent asks for, and who. Limit: the name of a principal identifies the person, so
 * `caller:ana` and `approver:ana` are one person, and somebody with two names counts twice.
 */
import * as z from "zod";
import { decisionSchema } from "./decision.ts";
import { instantSchema, principalPatternSchema, principalSchema } from "./values.ts";

/** Seconds, from a minute to 30 days. */
const delaySchema = z.number().min(60).max(2_592_000);

/**
 * Who approves what the agent asks for. It applies to approvals; a denial by anybody who may answer ends the question.
 * Only the operator changes it.
 */
export const votesSchema = z.strictObject({
  /** How many people must give the same approval, 1 to 10. Default 1. */
  needed: z.int().min(1).max(10).default(1),
  /** Whose approval counts, of those who may answer, up to 100 patterns as in `accepts_from`. Default: everybody's. */
  by: z.array(principalPatternSchema).min(1).max(100).default(["*"]),
  /** True: the delegator's own approval does not count. Default false. */
  not_by_delegator: z.boolean().default(false),
  /** Those who have not approved are notified again after each such time, 60 to 2592000 seconds; null: never. Default null. */
  remind_seconds: delaySchema.nullable().default(null),
  /** After this time, 60 to 2592000 seconds, approvals of `escalate_to` count, too; null: never. Default null. */
  escalate_seconds: delaySchema.nullable().default(null),
  /** Who is notified after `escalate_seconds`, and whose approvals count from then on: up to 100 patterns. Default: nobody. */
  escalate_to: z.array(principalPatternSchema).max(100).default([]),
});
export type Votes = z.output<typeof votesSchema>;
/** Changes to it: what is left out stays, and null resets. */
export const votesPatchSchema = z.strictObject({
  /** How many people must give the same approval, 1 to 10. */
  needed: votesSchema.shape.needed.unwrap().nullish(),
  /** Whose approval counts, of those who may answer. */
  by: votesSchema.shape.by.unwrap().nullish(),
  /** True: the delegator's own approval does not count. */
  not_by_delegator: votesSchema.shape.not_by_delegator.unwrap().nullish(),
  /** Those who have not approved are notified again after each such time, in seconds; null: never. */
  remind_seconds: votesSchema.shape.remind_seconds.unwrap().optional(),
  /** After this time, in seconds, approvals of `escalate_to` count, too; null: never. */
  escalate_seconds: votesSchema.shape.escalate_seconds.unwrap().optional(),
  /** Who is notified after `escalate_seconds`, and whose approvals count from then on. */
  escalate_to: votesSchema.shape.escalate_to.unwrap().nullish(),
});

/** One of the approvals that a question needs. */
export const voteSchema = z.object({
  /** Who approved. */
  by: principalSchema,
  /** How it was given, as in the event `answered`: `console`, `rest`, `link`, `rule` and so on. */
  via: z.string().optional(),
  /** When. */
  at: instantSchema,
});
export type Vote = z.infer<typeof voteSchema>;

/** The approvals of an open question so far, for an agent with `votes`. */
export const questionVotesSchema = z.object({
  /** How many people must give the same approval. */
  needed: z.int().min(1),
  /** Who has given it. */
  given: z.array(voteSchema),
  /** What they approved, by `request_id`; absent: nobody has approved. An approval of anything else voids theirs. */
  answers: z
    .record(
      z.string(),
      z.object({
        /** Yes or no. */
        decision: decisionSchema.optional(),
        /** The chosen option, if it is no decision. */
        text: z.string().optional(),
        /** The new arguments of the action, or another value that was given. */
        data: z.unknown().optional(),
      }),
    )
    .optional(),
});
export type QuestionVotes = z.infer<typeof questionVotesSchema>;
