/** Refuses a calendar that is not valid, and names the nearest one that is, with the next times at which it would run. */
import { ErrandError } from "../../schema/errors.ts";
import { shownName } from "../../schema/text.ts";
import { CronError, parseCron } from "../../util/calendar/cron.ts";
import { suggestCron } from "../../util/calendar/suggest.ts";
import { type CalendarText, calendarOf, nextTicks } from "../../util/calendar/ticks.ts";
import { isZone, nearestZone } from "../../util/calendar/zone.ts";

/** How many of the next times are shown. */
export const SHOWN = 3;

export const nextTimes = (calendar: CalendarText, now: number): string[] =>
  nextTicks(calendarOf(calendar), now, SHOWN).map((ms) => new Date(ms).toISOString());

export function requireCalendar({ cron, time_zone = "UTC" }: CalendarText, now: number): void {
  if (cron === undefined) return;
  const wrongCron = whyNot(cron);
  const isKnown = isZone(time_zone);
  if (wrongCron === null && isKnown) return;
  const good = {
    cron: wrongCron === null ? cron : suggestCron(cron),
    time_zone: isKnown ? time_zone : (nearestZone(time_zone) ?? "UTC"),
  };
  const next = nextTimes(good, now);
  const runs = `would next run at ${next.join(", ")}`;
  const issues = [];
  if (wrongCron !== null)
    issues.push({
      path: "cron",
      reason: `${wrongCron}; the nearest is '${good.cron}', which in ${good.time_zone} ${runs}`,
    });
  if (!isKnown)
    issues.push({
      path: "time_zone",
      reason: `'${shownName(time_zone)}' is no IANA time zone; the nearest is ${good.time_zone}, where '${good.cron}' ${runs}`,
    });
  const [first] = issues;
  throw new ErrandError("invalid_request", `${first?.path}: ${first?.reason}`, {
    details: { issues, suggestion: { ...good, next } },
  });
}

function whyNot(cron: string): string | null {
  try {
    parseCron(cron);
    return null;
  } catch (error) {
    if (error instanceof CronError) return error.message;
    throw error;
  }
}
