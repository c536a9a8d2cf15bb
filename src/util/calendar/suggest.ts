/**
 * The nearest good expression to one that is not: what other programs write (`@daily`, seconds, `?`), fields in another
 * order, numbers that are out of range. Limit: guesses; the answer shows when the suggestion would run.
 */
import { type Cron, FIELDS, fieldsOf, MONTHS, parseCron, WEEKDAYS } from "./cron.ts";

const MACROS: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};

/** Every morning, if nothing is nearer. */
const EXAMPLE = "0 9 * * *";

export function suggestCron(text: string): string {
  const macro = MACROS[text.trim().toLowerCase()];
  if (macro !== undefined) return macro;
  const time = /^(\d{1,2}):(\d{2})$/.exec(text.trim());
  const given = time ? [String(Number(time[2])), String(Number(time[1]))] : fieldsOf(text.slice(0, 200));
  for (const fields of [...shapes(given), ...shapes(given.map(withoutLetters))]) {
    for (const candidate of [
      fields,
      midnight(fields),
      endOfMonth(fields),
      ...swapped(fields),
      repaired(fields),
    ]) {
      const joined = candidate.join(" ");
      if (isCron(joined)) return joined;
    }
  }
  return EXAMPLE;
}

function isCron(text: string): Cron | null {
  try {
    return parseCron(text);
  } catch {
    return null;
  }
}

/** Five fields, of fewer or more. */
function shapes(fields: readonly string[]): string[][] {
  const count = fields.length;
  if (count === 7) return [fields.slice(1, 6)];
  if (count === 6) return [fields.slice(1), fields.slice(0, 5)];
  if (count > 7) return [];
  return [[...fields, ...FIELDS.slice(count).map(() => "*")]];
}

/** 24 o'clock is 0 o'clock. */
const midnight = (fields: readonly string[]): string[] =>
  fields.map((field, at) => (at === 1 && field === "24" ? "0" : field));

/** With two neighbors exchanged, or the month and the day, or the hour and the minute. */
function* swapped(fields: readonly string[]): Generator<string[]> {
  for (const at of [0, 2, 1, 3]) {
    const copy = [...fields];
    [copy[at], copy[at + 1]] = [copy[at + 1] ?? "*", copy[at] ?? "*"];
    yield copy;
  }
}

/** Numbers that are too large begin again, as 60 minutes and 24 hours do. */
const repaired = (fields: readonly string[]): string[] =>
  fields.map((field, at) => {
    const { from, to } = FIELDS[at] ?? FIELDS[0];
    if (/^\*\/\d+$/.test(field) && Number(field.slice(2)) > to) return String(from);
    return field.replace(/\d+/g, (digits) => {
      const value = Number(digits);
      if (value >= from && value <= to) return digits;
      return String(from === 0 ? value % (to + 1) : Math.min(Math.max(value, from), to));
    });
  });

/** A day that its months do not have is their last one. */
const endOfMonth = (fields: readonly string[]): string[] =>
  fields.map((field, at) => (at === 2 ? field.replace(/29|30|31/g, fields[3] === "2" ? "28" : "30") : field));

/** `?` is a star to others; names may be whole words. */
function withoutLetters(field: string): string {
  if (field === "?") return "*";
  return field.replace(/[A-Za-z]+/g, (word) => {
    const short = word.slice(0, 3).toLowerCase();
    return MONTHS.includes(short) || WEEKDAYS.includes(short) ? short.toUpperCase() : word;
  });
}
