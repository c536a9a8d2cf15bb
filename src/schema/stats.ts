/** Figures of the last hour and day, for charts. Limit: sums and approximate percentiles; events have every single move. */
import * as z from "zod";
import { agentNameSchema, instantSchema, principalSchema } from "./values.ts";

export const statsPeriodSchema = z.enum(["hour", "day"]);
/** The last 60 minutes by the minute, or the last 24 hours by the quarter of an hour. */
export type StatsPeriod = z.infer<typeof statsPeriodSchema>;

export const statsFilterSchema = z.strictObject({
  /** Default: hour. */
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

/** Half took at most the median, 95 of 100 at most `p95_seconds`; both are estimates and can exceed the longest. Null: nothing was measured. */
export const durationsSchema = z
  .strictObject({ median_seconds: secondsSchema, p95_seconds: secondsSchema })
  .nullable();
export type Durations = z.infer<typeof durationsSchema>;

const tokensSchema = z.number().min(0);

export const usedSchema = z.strictObject({
  input_tokens: tokensSchema,
  output_tokens: tokensSchema,
  cached_tokens: tokensSchema,
  reasoning_tokens: tokensSchema,
  /** By currency, up to 4 in each bucket. */
  costs: z.array(z.strictObject({ currency: z.string(), cost: z.number().min(0) })),
});

const figures = {
  /** Delegations that were accepted. */
  sent: countSchema,
  leased: countSchema,
  completed: countSchema,
  failed: countSchema,
  rejected: countSchema,
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
  period: statsPeriodSchema,
  target: agentNameSchema.nullable(),
  delegator: principalSchema.nullable(),
  bucket_seconds: z.int().min(1),
  /** Oldest first; the last one is not over yet. */
  buckets: z.array(statsBucketSchema),
  totals: z.strictObject({
    ...figures,
    /** Failed and rejected delegations by code, most frequent first; `other` sums up rare codes. */
    failures: z.array(z.strictObject({ code: z.string(), count: countSchema })),
  }),
});
/** The figures of a period. */
export type Stats = z.infer<typeof statsSchema>;

export const agentFiguresSchema = z.strictObject({
  agent: agentNameSchema,
  completed: countSchema,
  failed: countSchema,
  rejected: countSchema,
  canceled: countSchema,
  /** Oldest first; the last one is not over yet. `failed` counts the rejected delegations, too. */
  quarters: z.array(z.strictObject({ ok: countSchema, failed: countSchema })),
  costs: usedSchema.shape.costs,
});
/** The figures of an agent's last hour, by the quarter of an hour. */
export type AgentFigures = z.infer<typeof agentFiguresSchema>;

export const agentFiguresPageSchema = z.strictObject({
  /** When the first quarter begins: more than an hour ago, because the last one is not over yet. */
  since: instantSchema,
  /** By name. */
  agents: z.array(agentFiguresSchema),
  next_cursor: agentNameSchema.nullable(),
});
export type AgentFiguresPage = z.infer<typeof agentFiguresPageSchema>;
