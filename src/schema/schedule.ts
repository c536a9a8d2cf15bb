/** Schedules: what they delegate, and when. Limit: engine/schedules checks cron expressions, zones and the delegation. */
import * as z from "zod";
import { delegateRequestSchema } from "./delegation.ts";
import { jsonObjectSchema } from "./json-object.ts";
import { LIMITS } from "./limits.ts";
import { atMostOne, exactlyOne } from "./rules.ts";
import { delegationIdSchema, givenInstantSchema, instantSchema, principalSchema } from "./values.ts";

export const SCHEDULE_ID = /^sch_[0-9a-z]{26}$/;
/** The id of a schedule, `sch_…`. */
export const scheduleIdSchema = z.string().regex(SCHEDULE_ID, "not a schedule id");

/** Members that fit only one delegation. */
const ONCE = ["deadline", "not_before", "parent_id"] as const;
const repeatable = z.refine<{ readonly delegation?: Readonly<Record<string, unknown>> | undefined }>(
  ({ delegation }) => ONCE.every((name) => delegation?.[name] === undefined),
  {
    error:
      "a schedule delegates again and again: give ttl_seconds and delay_seconds instead of deadline and not_before, and no parent_id",
    path: ["delegation"],
  },
);

/** What becomes of a tick while an earlier delegation of the schedule has not ended. */
const overlapSchema = z.enum(["skip", "queue", "cancel_running"]);
/** What becomes of ticks that the broker could not make in time. */
const missedSchema = z.enum(["skip", "one", "all"]);

export const scheduleRequestSchema = z
  .strictObject({
    /** For people, up to 200 characters. */
    name: z.string().min(1).max(200).optional(),
    /**
     * When it delegates, as five fields: minute, hour, day of the month, month, weekday; for example `30 9 * * MON-FRI`. This
     * or `every_seconds`.
     */
    cron: z.string().min(1).max(200).optional(),
    /** The IANA name of the time zone of `cron`, for example `Europe/Berlin`. Default `UTC`. */
    time_zone: z.string().min(1).max(64).optional(),
    /** The seconds between two ticks, 1 to 31536000 (a year); this or `cron`. */
    every_seconds: z.int().min(LIMITS.schedule_every_seconds.value).max(31_536_000).optional(),
    /** An instant from which `every_seconds` counts. Default: when the schedule is created. */
    anchor: givenInstantSchema.optional(),
    /** What it delegates: the body of `POST /v1/delegations`, without `deadline`, `not_before` and `parent_id`. */
    delegation: delegateRequestSchema,
    /**
     * What becomes of a tick while an earlier delegation of the schedule has not ended: `skip` leaves it out, `queue`
     * delegates all the same, `cancel_running` cancels the earlier one first. Default `queue`.
     */
    overlap: overlapSchema.default("queue"),
    /**
     * What becomes of ticks that could not be made within 30 seconds, because the broker was away: `skip` leaves them out,
     * `one` makes the newest, `all` makes the newest 100. Default `one`.
     */
    missed: missedSchema.default("one"),
    /** It starts paused. Default false. */
    paused: z.boolean().default(false),
  })
  .check(
    exactlyOne("cron", "every_seconds"),
    atMostOne("time_zone", "every_seconds"),
    atMostOne("anchor", "cron"),
    repeatable,
  );
export type ScheduleRequest = z.output<typeof scheduleRequestSchema>;
/** A new schedule: `delegation`, and either `cron` or `every_seconds`. */
export type ScheduleInput = z.input<typeof scheduleRequestSchema>;

/** A JSON Merge Patch: what it leaves out stays, null removes a setting; `delegation` is replaced whole. */
export const schedulePatchSchema = z
  .strictObject({
    /** For people, up to 200 characters; null: none. */
    name: z.string().min(1).max(200).nullable().optional(),
    /** As in a new schedule; null with `every_seconds`. */
    cron: z.string().min(1).max(200).nullable().optional(),
    /** As in a new schedule; null: UTC. */
    time_zone: z.string().min(1).max(64).nullable().optional(),
    /** As in a new schedule; null with `cron`. */
    every_seconds: z.int().min(1).max(31_536_000).nullable().optional(),
    /** As in a new schedule; null: now. */
    anchor: givenInstantSchema.nullable().optional(),
    /** What it delegates from now on. */
    delegation: delegateRequestSchema.optional(),
    /** As in a new schedule; null: the default. */
    overlap: overlapSchema.nullable().optional(),
    /** As in a new schedule; null: the default. */
    missed: missedSchema.nullable().optional(),
  })
  .check(repeatable);
export type SchedulePatch = z.output<typeof schedulePatchSchema>;
/** The settings of a schedule to change. */
export type SchedulePatchInput = z.input<typeof schedulePatchSchema>;

export const scheduleRunSchema = z.strictObject({
  /** `tick`: the calendar asked for it; `manual`: somebody ran it now. */
  kind: z.enum(["tick", "manual"]),
  /** The time of the tick, or when it was run. */
  at: instantSchema,
  /** The delegation that it made; null: it made none. */
  delegation_id: delegationIdSchema.nullable(),
  /** Why it made none: `overlap`, `missed`, or the code of an error. Null: it made one. */
  skipped: z.string().nullable(),
  /** Of an entry for several missed ticks: the first of them; `at` is the last. Absent: one tick. */
  since: instantSchema.optional(),
});
/** A tick of a schedule, or a manual run, and what became of it. */
export type ScheduleRun = z.infer<typeof scheduleRunSchema>;

export const scheduleSchema = z.strictObject({
  /** Identifies the schedule. */
  id: scheduleIdSchema,
  /** For people; null: none. */
  name: z.string().nullable(),
  /** Who created it, and in whose name it delegates. */
  owner: principalSchema,
  /** `active`; `paused` by somebody; `blocked`: it stopped by itself, and `problem` says why. Resume it once that is fixed. */
  state: z.enum(["active", "paused", "blocked"]),
  /** Why it is blocked, or why its last tick has to wait; null: nothing is wrong. */
  problem: z
    .strictObject({
      /** The code of the error. */
      code: z.string(),
      /** What happened. */
      message: z.string(),
      /** When. */
      at: instantSchema,
    })
    .nullable(),
  /** The five fields; absent with `every_seconds`. */
  cron: z.string().optional(),
  /** The time zone of `cron`; absent with `every_seconds`. */
  time_zone: z.string().optional(),
  /** The seconds between two ticks; absent with `cron`. */
  every_seconds: z.number().optional(),
  /** From when `every_seconds` counts; absent with `cron`. */
  anchor: instantSchema.optional(),
  /** What it delegates, without the secrets of a callback. */
  delegation: jsonObjectSchema,
  /** What becomes of a tick while an earlier delegation has not ended. */
  overlap: overlapSchema,
  /** What becomes of ticks that could not be made in time. */
  missed: missedSchema,
  /** The next three ticks; empty while it is not active. */
  next: z.array(instantSchema),
  /** The newest runs, newest first, up to 5. */
  last_runs: z.array(scheduleRunSchema),
  /** When it was created. */
  created_at: instantSchema,
  /** When its settings or its state were last changed. */
  updated_at: instantSchema,
});
/** What is delegated again and again, and when. */
export type Schedule = z.infer<typeof scheduleSchema>;

/** A page of schedules. */
export const schedulePageSchema = z.strictObject({
  /** The schedules, oldest first. */
  schedules: z.array(scheduleSchema),
  /** The `cursor` of the next page; null: this is the last. */
  next_cursor: z.string().nullable(),
});

/** The history of a schedule. */
export const scheduleRunsSchema = z.strictObject({
  /** The newest 100, newest first. */
  runs: z.array(scheduleRunSchema),
});
