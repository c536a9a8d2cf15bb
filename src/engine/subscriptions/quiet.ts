/**
 * Quiet hours, by the local time of a zone, also when its clocks change. If the clocks skip the end, the quiet hours end at the
 * skip; what they show twice is quiet both times. Limit: near such a change, a wait may also last through minutes between two
 * quiet times.
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
  // If the clocks change until then, the end is between these two.
  const ends = [end - offset, end - offsetAt(zone, end - offset)];
  const latest = Math.max(...ends);
  let at = Math.max(Math.min(...ends), Math.ceil(now / MINUTE_MS) * MINUTE_MS);
  while (at < latest && isQuiet(quiet, at)) at += MINUTE_MS;
  // The clocks may have skipped the whole time that is not quiet.
  return at - now + untilLoud(quiet, at);
}
