/** A schedule in words. */
import type { Schedule } from "../schema/schedule.ts";
import { durationText } from "./words.ts";

/** `30 9 * * MON-FRI (Europe/Berlin)`, or `every 10m`. */
export const whenText = ({ cron, time_zone, every_seconds = 0 }: Schedule): string =>
  cron === undefined ? `every ${durationText(every_seconds * 1000)}` : `${cron} (${time_zone})`;
