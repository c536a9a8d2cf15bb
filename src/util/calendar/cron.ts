/**
 * Reads a cron expression of five fields: minute, hour, day of the month, month, weekday. Each is `*`, a number, a name, a
 * range, a list, or one of these with a step. As in every cron, a day has to fit only one of the day fields if neither
 * begins with `*`.
 * Limit: no seconds, no `@daily`, no `L`, `W`, `#` and `?`; suggest.ts knows what is meant by some of them.
 */

export interface Cron {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  /** 0 is Sunday. */
  readonly weekdays: ReadonlySet<number>;
  /** A day has to fit both day fields. */
  readonly needsBothDays: boolean;
  /** The minute or the hour begins with `*`: it repeats, rather than happens at certain times of the day. */
  readonly repeats: boolean;
}

/** Why a text is no cron expression. */
export class CronError extends Error {}

interface Field {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly names?: readonly string[];
}

export const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
export const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

export const FIELDS = [
  { name: "minute", from: 0, to: 59 },
  { name: "hour", from: 0, to: 23 },
  { name: "day of the month", from: 1, to: 31 },
  { name: "month", from: 1, to: 12, names: MONTHS },
  { name: "weekday", from: 0, to: 7, names: WEEKDAYS },
] as const satisfies readonly Field[];

const DAYS_OF_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

export const fieldsOf = (text: string): string[] => text.trim().split(/\s+/);

/** Throws a {@link CronError}. */
export function parseCron(text: string): Cron {
  const fields = fieldsOf(text);
  if (fields.length !== FIELDS.length) {
    const found = fields.length === 1 ? "1 field" : `${fields.length} fields`;
    throw new CronError(`has ${found} and needs 5: minute, hour, day of the month, month, weekday`);
  }
  const [minutes, hours, days, months, weekdays] = FIELDS.map((field, at) =>
    valuesOf(fields[at] ?? "", field),
  );
  const cron: Cron = {
    minutes: [...(minutes ?? [])].sort((a, b) => a - b),
    hours: [...(hours ?? [])].sort((a, b) => a - b),
    days: days ?? new Set(),
    months: months ?? new Set(),
    weekdays: new Set([...(weekdays ?? [])].map((day) => day % 7)),
    needsBothDays: fields[2]?.startsWith("*") === true || fields[4]?.startsWith("*") === true,
    repeats: fields[0]?.startsWith("*") === true || fields[1]?.startsWith("*") === true,
  };
  if (!isPossible(cron)) throw new CronError("names a day that no month of it has");
  return cron;
}

function isPossible({ days, months, needsBothDays, weekdays }: Cron): boolean {
  if (!needsBothDays && weekdays.size > 0) return true;
  return [...months].some((month) => [...days].some((day) => day <= (DAYS_OF_MONTH[month - 1] ?? 0)));
}

function valuesOf(text: string, field: Field): Set<number> {
  const values = new Set<number>();
  for (const part of text.split(",")) {
    const [range = "", step, ...more] = part.split("/");
    if (more.length > 0) throw wrong(text, field);
    const by = step === undefined ? 1 : numberOf(step, { name: field.name, from: 1, to: field.to }, text);
    const [first, last] = boundsOf(range, field, text, step !== undefined);
    for (let value = first; value <= last; value += by) values.add(value);
  }
  return values;
}

function boundsOf(range: string, field: Field, text: string, hasStep: boolean): [number, number] {
  // 7 is another name of Sunday, which a star has already.
  if (range === "*") return [field.from, field.to === 7 ? 6 : field.to];
  const [low = "", high, ...more] = range.split("-");
  const first = numberOf(low, field, text);
  if (high === undefined) return [first, hasStep ? field.to : first];
  const last = numberOf(high, field, text);
  if (more.length > 0 || last < first) throw wrong(text, field);
  return [first, last];
}

function numberOf(text: string, field: Field, whole: string): number {
  const named = field.names?.indexOf(text.toLowerCase()) ?? -1;
  if (named >= 0) return named + (field.from === 1 ? 1 : 0);
  const value = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= field.from && value <= field.to)) throw wrong(whole, field);
  return value;
}

function wrong(text: string, { name, from, to, names }: Field): CronError {
  const shown = text.length > 20 ? `${text.slice(0, 20)}…` : text;
  const also = names ? `, or ${names[0]?.toUpperCase()} to ${names.at(-1)?.toUpperCase()}` : "";
  return new CronError(`the ${name} '${shown}' is not valid: it goes from ${from} to ${to}${also}`);
}

const MINUTE = 60_000;
const DAY = 86_400_000;
/** 29 February may be the same weekday again only after 40 years. */
const SEARCHED_DAYS = 41 * 366;

/**
 * The first time that fits after `wall`, as a clock on the wall shows it: ms since 1970 as if it were UTC. Null if there
 * is none, which a parsed expression always has.
 */
export function nextWallTime(cron: Cron, wall: number): number | null {
  const start = Math.floor(wall / MINUTE) * MINUTE + MINUTE;
  const midnight = Math.floor(start / DAY) * DAY;
  for (let day = 0; day < SEARCHED_DAYS; day += 1) {
    const today = midnight + day * DAY;
    if (!isOnDay(cron, new Date(today))) continue;
    const from = Math.max(0, start - today);
    for (const hour of cron.hours) {
      if ((hour + 1) * 60 * MINUTE <= from) continue;
      for (const minute of cron.minutes) {
        const at = (hour * 60 + minute) * MINUTE;
        if (at >= from) return today + at;
      }
    }
  }
  return null;
}

function isOnDay(cron: Cron, date: Date): boolean {
  if (!cron.months.has(date.getUTCMonth() + 1)) return false;
  const isDay = cron.days.has(date.getUTCDate());
  const isWeekday = cron.weekdays.has(date.getUTCDay());
  return cron.needsBothDays ? isDay && isWeekday : isDay || isWeekday;
}
