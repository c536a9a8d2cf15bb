/** Quiet hours, in the time of a zone. Limit: on the day on which its clocks change, they end by the clock on the wall. */
import { offsetAt } from "../../util/calendar/zone.ts";
import type { Settings } from "./stored-subscription.ts";

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

const minutesOf = (time: string): number => {
  const [hours = 0, minutes = 0] = time.split(":").map(Number);
  return hours * 60 + minutes;
};

/** How long it is still quiet, ms; 0: it is not. */
export function untilLoud(quiet: Settings["quiet"], now: number): number {
  if (quiet === null) return 0;
  const from = minutesOf(quiet.from);
  const to = minutesOf(quiet.to);
  const local = now + offsetAt(quiet.time_zone, now);
  const today = Math.floor(local / DAY_MS) * DAY_MS;
  const minute = Math.floor((local - today) / MINUTE_MS);
  const isQuiet = from < to ? minute >= from && minute < to : from > to && (minute >= from || minute < to);
  if (!isQuiet) return 0;
  const end = today + to * MINUTE_MS + (minute < to ? 0 : DAY_MS);
  // The offset may be another by then.
  return Math.max(MINUTE_MS, end - offsetAt(quiet.time_zone, end - offsetAt(quiet.time_zone, now)) - now);
}
