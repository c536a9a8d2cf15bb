/**
 * Parses a point in time from the command line: how long ago (`3d`), `today` or `yesterday`, a date (its midnight), or a date and time. Without a
 * zone, it is local.
 */
import { InvalidArgumentError } from "commander";
import { givenInstantSchema } from "../../schema/values.ts";
import { secondsIn } from "./duration.ts";

/** For the help of options that take an instant. */
export const INSTANT_EXAMPLE =
  "for example 3d (ago), today, 2026-01-31 (local midnight) or 2026-01-31T08:00:00Z";

const LOCAL = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d))?)?$/;

/** Returns ISO 8601 with a zone, as the broker requires. */
export function instant(value: string): string {
  const given = day(value) ?? ago(value) ?? local(value) ?? value;
  const parsed = givenInstantSchema.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError(
    "Use an age (3d), today, yesterday, a date (2026-01-31), a local time (2026-01-31T08:00) or a time with a zone (2026-01-31T08:00:00Z, …+01:00).",
  );
}

/** Its midnight. */
function day(value: string): string | undefined {
  const daysAgo = ["today", "yesterday"].indexOf(value);
  if (daysAgo === -1) return undefined;
  const now = new Date();
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - daysAgo).toISOString();
}

/** An age needs its unit, because a bare number could be a year. */
function ago(value: string): string | undefined {
  const seconds = /\d$/.test(value) ? undefined : secondsIn(value);
  const date = new Date(Date.now() - (seconds ?? Number.NaN) * 1000);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

function local(value: string): string | undefined {
  const numbers = LOCAL.exec(value)
    ?.slice(1)
    .map((part = "0") => Number(part));
  if (numbers === undefined) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = numbers;
  const date = new Date(year, month - 1, day, hour, minute, second);
  const isDay = date.getFullYear() === year && date.getMonth() === month - 1 && date.getDate() === day;
  return isDay && hour < 24 && minute < 60 && second < 60 ? date.toISOString() : undefined;
}
