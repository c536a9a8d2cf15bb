/** Figures of the last hour and day, for charts. Limit: sums and approximate percentiles; events have every single move. */
import * as z from "zod";
import { agentNameSchema, instantSchema, principalSchema } from "./values.ts";

export const statsPeriodSchema = z.enum(["hour", "day"]);
/** The last 60 minutes by the minute, or the last 24 hours by the quarter of an hour. */
export type StatsPeriod = z.infer<typeof statsPeriodSchema>;

export const statsFilterSchema = z.strictObject({
  /** The last hour by the minute, or the last day by the quarter of an hour. */
  period: statsPeriodSchema.optional(),
  /** Only work for this agent. */
  target: agentNameSchema.optional(),
  /** Only what this principal delegated; not together with `target`. */
  delegator: principalSchema.optional(),
});
/** The figures to read; without `target` and `delegator`: all that concern the caller. */
export type StatsFilter = z.infer<typeof statsFilterSchema>;

const countSchema = z.int().min(0);
const secondsSchema = z.number().min(0);

/** How long something took; estimates, which can exceed the longest. Null: nothing was measured. */
export const durationsSchema = z
  .strictObject({
    /** Half took at most this long. */
    median_seconds: secondsSchema,
    /** 95 of 100 took at most this long. */
    p95_seconds: secondsSchema,
  })
  .nullable();
export type Durations = z.infer<typeof durationsSchema>;

const tokensSchema = z.number().min(0);

/** What was used together. */
export const usedSchema = z.strictObject({
  /** All input, with the cached. */
  input_tokens: tokensSchema,
  /** All output, with the reasoning. */
  output_tokens: tokensSchema,
  /** Of the input: read from a cache. */
  cached_tokens: tokensSchema,
  /** Of the output: the reasoning. */
  reasoning_tokens: tokensSchema,
  /** By currency, up to 4 in each bucket. */
  costs: z.array(
    z.strictObject({
      /** ISO 4217, for example `USD`. */
      currency: z.string(),
      /** The sum, in this currency. */
      cost: z.number().min(0),
    }),
  ),
});

const figures = {
  /** Delegations that were accepted. */
  sent: countSchema,
  /** Leases that were granted. */
  leased: countSchema,
  /** Delegations that completed. */
  completed: countSchema,
  /** Delegations that failed. */
  failed: countSchema,
  /** Delegations that the agent rejected. */
  rejected: countSchema,
  /** Delegations that were canceled. */
  canceled: countSchema,
  /** From a ready ticket to its lease. */
  time_to_lease: durationsSchema,
  /** From accepting a delegation to its completion. */
  time_to_answer: durationsSchema,
  /** What was used, when it was reported; absent: nothing was reported. */
  usage: usedSchema.optional(),
};

export const statsBucketSchema = z.strictObject({
  /** When it begins. */
  at: instantSchema,
  ...figures,
  /** Delegations that waited: the highest of the samples, taken twice a minute and now; null for a delegator. */
  waiting: countSchema.nullable(),
  /** Live leases: the highest of the samples. */
  working: countSchema.nullable(),
  /** The age of the oldest waiting delegation: the highest of the samples. */
  oldest_seconds: secondsSchema.nullable(),
});
/** The figures of one minute, or of one quarter of an hour. */
export type StatsBucket = z.infer<typeof statsBucketSchema>;

export const statsSchema = z.strictObject({
  /** The period that the figures are of. */
  period: statsPeriodSchema,
  /** The agent that they are of; null: not one. */
  target: agentNameSchema.nullable(),
  /** The delegator that they are of; null: not one. */
  delegator: principalSchema.nullable(),
  /** How long each bucket is. */
  bucket_seconds: z.int().min(1),
  /** Oldest first; the last one is not over yet. */
  buckets: z.array(statsBucketSchema),
  /** The sums of the period. */
  totals: z.strictObject({
    ...figures,
    /** Failed and rejected delegations by code, most frequent first; `other` sums up rare codes. */
    failures: z.array(
      z.strictObject({
        /** The code of the error. */
        code: z.string(),
        /** How many had it. */
        count: countSchema,
      }),
    ),
  }),
});
/** The figures of a period. */
export type Stats = z.infer<typeof statsSchema>;

export const agentFiguresSchema = z.strictObject({
  /** The agent. */
  agent: agentNameSchema,
  /** Delegations that completed. */
  completed: countSchema,
  /** Delegations that failed. */
  failed: countSchema,
  /** Delegations that it rejected. */
  rejected: countSchema,
  /** Delegations that were canceled. */
  canceled: countSchema,
  /** Oldest first; the last one is not over yet. `failed` counts the rejected delegations, too. */
  quarters: z.array(
    z.strictObject({
      /** Completed. */
      ok: countSchema,
      /** Failed or rejected. */
      failed: countSchema,
    }),
  ),
  /** What it cost, by currency. */
  costs: usedSchema.shape.costs,
});
/** The figures of an agent's last hour, by the quarter of an hour. */
export type AgentFigures = z.infer<typeof agentFiguresSchema>;

export const agentFiguresPageSchema = z.strictObject({
  /** When the first quarter begins: more than an hour ago, because the last one is not over yet. */
  since: instantSchema,
  /** The figures, by the agents' names. */
  agents: z.array(agentFiguresSchema),
  /** The `cursor` of the next page; null: this is the last. */
  next_cursor: agentNameSchema.nullable(),
});
/** A page of agents' figures. */
export type AgentFiguresPage = z.infer<typeof agentFiguresPageSchema>;
