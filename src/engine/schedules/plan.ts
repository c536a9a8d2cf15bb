/** Decides what a schedule does next, from its calendar and its last decided tick alone. */
import { LIMITS } from "../../schema/limits.ts";
import { type Calendar, newestTicks, nextTick } from "../../util/calendar/ticks.ts";
import type { Settings } from "./stored-schedule.ts";

/** A tick that is later than this is missed. */
export const LATE_MS = LIMITS.schedule_missed_seconds.value * 1000;
/** How many of the missed ticks are made later. */
const MADE_LATER = { skip: 0, one: 1, all: LIMITS.schedule_missed.value } as const;

export type Plan =
  /** Nothing before this instant; null: never. */
  | { readonly kind: "wait"; readonly at: number | null }
  /** To leave out the missed ticks from `since` to `at`. */
  | { readonly kind: "missed"; readonly at: number; readonly since: number }
  /** To make the tick at this instant. */
  | { readonly kind: "tick"; readonly at: number };

/** Missed ticks that are not made come first, then the others in their order. */
export function planOf(calendar: Calendar, missed: Settings["missed"], last: number, now: number): Plan {
  const next = nextTick(calendar, last);
  if (next === null || next > now) return { kind: "wait", at: next };
  const inTime = now - LATE_MS;
  if (next < inTime) {
    const kept = MADE_LATER[missed];
    const newest = newestTicks(calendar, last, inTime - 1, kept + 1);
    const [dropped] = newest;
    if (newest.length > kept && dropped !== undefined) return { kind: "missed", at: dropped, since: next };
  }
  return { kind: "tick", at: next };
}
