/** A schedule as it is stored: a hash, whose numbers and JSON are texts. */
import * as z from "zod";
import { jsonObjectSchema } from "../../schema/json-object.ts";
import type { ScheduleRequest } from "../../schema/schedule.ts";
import { type CalendarText, calendarOf, nextTick } from "../../util/calendar/ticks.ts";

/** What its owner chose. The delegation is kept as it was sent, and checked again each time. */
const settingsSchema = z.object({
  name: z.string().optional(),
  cron: z.string().optional(),
  time_zone: z.string().optional(),
  every_seconds: z.number().optional(),
  anchor: z.string().optional(),
  delegation: jsonObjectSchema,
  overlap: z.enum(["skip", "queue", "cancel_running"]),
  missed: z.enum(["skip", "one", "all"]),
});
export type Settings = z.infer<typeof settingsSchema>;

/** A tick that is being made: first it cancels these delegations. */
const pendingSchema = z.object({ at: z.number(), cancels: z.array(z.string()) });
export type Pending = z.infer<typeof pendingSchema>;

const problemSchema = z.object({ code: z.string(), message: z.string(), at: z.number() });
export type Problem = z.infer<typeof problemSchema>;

export const storedRunSchema = z.object({
  kind: z.enum(["tick", "manual"]),
  at: z.number(),
  delegation_id: z.string().nullable(),
  skipped: z.string().nullable(),
  since: z.number().optional(),
});
export type StoredRun = z.infer<typeof storedRunSchema>;

const json = <T extends z.ZodType>(schema: T) =>
  z
    .string()
    .transform((text): unknown => (text === "" ? null : JSON.parse(text)))
    .pipe(schema);

/** The fields of the hash. */
const storedSchema = z.object({
  owner: z.string(),
  /** What stands for the token with which it was started (`Tokens.holderOf`). */
  token: z.string(),
  /** Hash of the body that created it. */
  body: z.string(),
  settings: json(settingsSchema),
  state: z.enum(["active", "paused", "blocked"]),
  problem: json(problemSchema.nullable()),
  /** The tick up to which everything is decided, ms. */
  last: z.coerce.number(),
  pending: json(pendingSchema.nullable()),
  /** The delegation of its newest tick; empty: none. */
  tick_run: z.string(),
  /** Those of its manual runs that had not ended at the newest one, with spaces in between. */
  manual_run: z.string().transform((ids) => ids.split(" ").filter((id) => id !== "")),
  created_at: z.coerce.number(),
  updated_at: z.coerce.number(),
  /** Grows with every change. */
  seq: z.string(),
});
export interface StoredSchedule extends z.infer<typeof storedSchema> {
  readonly id: string;
}

export const toStoredSchedule = (id: string, fields: Readonly<Record<string, string>>): StoredSchedule => ({
  ...storedSchema.parse(fields),
  id,
});

/** The settings of a request whose calendar was checked. */
export function settingsOf(
  request: ScheduleRequest,
  delegation: Record<string, unknown>,
  now: number,
): Settings {
  const { name, cron, every_seconds, overlap, missed } = request;
  const calendar: CalendarText =
    cron === undefined
      ? { every_seconds, anchor: request.anchor ?? new Date(now).toISOString() }
      : { cron, time_zone: request.time_zone ?? "UTC" };
  return { ...(name !== undefined && { name }), ...calendar, delegation, overlap, missed };
}

/** When an active schedule needs something after everything up to `last` is decided; null: never. */
export const dueAfter = (settings: Settings, last: number): number | null =>
  nextTick(calendarOf(settings), last);
