/**
 * Quiet hours, by the clock on the wall in a zone, also on the days on which it changes: an end that the clock skips is where it
 * goes on, and what the clock shows twice is quiet, or the end, both times. Limit: what waits stays quiet through an hour that comes
 * again, even if a part of it is not quiet.
 */
import { offsetAt } from "../../util/calendar/zone.ts";
import type { Settings } from "./stored-subscription.ts";

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

type Quiet = NonNullable<Settings["quiet"]>;

const minutesOf = (time: string): number => {
  const [hours = 0, minutes = 0] = time.split(":").map(Number);
  return hours * 60 + minutes;
};

/** What the clock shows: the beginning of its day, and the minute of it. */
function clockAt(zone: string, at: number): { readonly day: number; readonly minute: number } {
  const local = at + offsetAt(zone, at);
  const day = Math.floor(local / DAY_MS) * DAY_MS;
  return { day, minute: Math.floor((local - day) / MINUTE_MS) };
}

function isQuiet(quiet: Quiet, at: number): boolean {
  const [from, to] = [minutesOf(quiet.from), minutesOf(quiet.to)];
  const { minute } = clockAt(quiet.time_zone, at);
  return from < to ? minute >= from && minute < to : from > to && (minute >= from || minute < to);
}

/** How long it is still quiet, ms; 0: it is not. */
export function untilLoud(quiet: Settings["quiet"], now: number): number {
  if (quiet === null || !isQuiet(quiet, now)) return 0;
  const { time_zone: zone } = quiet;
  const to = minutesOf(quiet.to);
  const { day, minute } = clockAt(zone, now);
  const end = day + to * MINUTE_MS + (minute < to ? 0 : DAY_MS);
  const offset = offsetAt(zone, now);
  // The clock may change until then; where it does, the end is in between.
  const ends = [end - offset, end - offsetAt(zone, end - offset)];
  const latest = Math.max(...ends);
  let at = Math.max(Math.min(...ends), Math.ceil(now / MINUTE_MS) * MINUTE_MS);
  while (at < latest && isQuiet(quiet, at)) at += MINUTE_MS;
  // The clock may have skipped all that is not quiet on this day.
  return at - now + untilLoud(quiet, at);
}
