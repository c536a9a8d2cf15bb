/** The calendar in several zones, at the changes of their clocks; elsewhere cron-parser, which BullMQ brings, agrees. */
import { CronExpressionParser } from "cron-parser";
import fc from "fast-check";
import { expect, test } from "vitest";
import { calendarOf, newestTicks, nextTicks } from "../../../src/util/calendar/ticks.ts";

const ticks = (cron: string, time_zone: string, from: string, count: number): string[] =>
  nextTicks(calendarOf({ cron, time_zone }), Date.parse(from), count).map((ms) =>
    new Date(ms).toISOString().slice(5, 16),
  );

test.each([
  // 02:00 to 03:00 is left out on 29 March, and repeated on 25 October.
  ["30 2 * * *", "Europe/Berlin", "2026-03-28T00:00Z", ["03-28T01:30", "03-29T01:00", "03-30T00:30"]],
  ["15,45 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["03-29T01:00", "03-30T00:15", "03-30T00:45"]],
  ["30 * * * *", "Europe/Berlin", "2026-03-29T00:00Z", ["03-29T00:30", "03-29T01:30", "03-29T02:30"]],
  ["30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", ["10-25T00:30", "10-26T01:30", "10-27T01:30"]],
  ["30 2 * * *", "Europe/Berlin", "2026-10-25T01:10Z", ["10-26T01:30", "10-27T01:30"]],
  [
    "*/30 2 * * *",
    "Europe/Berlin",
    "2026-10-25T00:00Z",
    ["10-25T00:30", "10-25T01:00", "10-25T01:30", "10-26T01:00"],
  ],
  ["0 2 * * *", "America/New_York", "2026-03-07T12:00Z", ["03-08T07:00", "03-09T06:00"]],
  ["30 1 * * *", "America/New_York", "2026-10-31T12:00Z", ["11-01T05:30", "11-02T06:30"]],
  ["0 * * * *", "America/New_York", "2026-11-01T04:30Z", ["11-01T05:00", "11-01T06:00", "11-01T07:00"]],
  // Half an hour: 02:00 to 02:30 is left out on 4 October, 01:30 to 02:00 is repeated on 5 April.
  ["15 2 * * *", "Australia/Lord_Howe", "2026-10-02T14:00Z", ["10-02T15:45", "10-03T15:30", "10-04T15:15"]],
  ["*/15 * * * *", "Australia/Lord_Howe", "2026-10-03T15:00Z", ["10-03T15:15", "10-03T15:30", "10-03T15:45"]],
  ["*/30 * * * *", "Australia/Lord_Howe", "2026-04-04T14:00Z", ["04-04T14:30", "04-04T15:00", "04-04T15:30"]],
  ["45 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:00Z", ["04-04T14:45", "04-05T15:15"]],
  ["0 9 * * *", "Asia/Kathmandu", "2026-10-03T15:00Z", ["10-04T03:15", "10-05T03:15"]],
  ["0 0 29 2 *", "UTC", "2026-01-01T00:00Z", ["02-29T00:00", "02-29T00:00"]],
  // Only if it is a Sunday: 2032 and 2060.
  ["0 0 29 2 */7", "UTC", "2026-01-01T00:00Z", ["02-29T00:00", "02-29T00:00"]],
  ["0 12 13 * FRI", "UTC", "2026-02-01T00:00Z", ["02-06T12:00", "02-13T12:00", "02-20T12:00"]],
])("%s in %s after %s", (cron, zone, from, expected) => {
  expect(ticks(cron, zone, from, expected.length)).toEqual(expected);
});

test("every N seconds counts from the anchor, whatever was decided before", () => {
  const calendar = calendarOf({ every_seconds: 7, anchor: "2026-01-01T00:00:03Z" });
  const anchor = Date.parse("2026-01-01T00:00:03Z");
  expect(nextTicks(calendar, 0, 2)).toEqual([anchor, anchor + 7_000]);
  expect(nextTicks(calendar, anchor + 6_999, 1)).toEqual([anchor + 7_000]);
  expect(nextTicks(calendar, anchor + 7_000, 1)).toEqual([anchor + 14_000]);
});

const field = (from: number, to: number) =>
  fc.oneof(
    fc.constant("*"),
    fc.integer({ min: from, max: to }).map(String),
    fc.integer({ min: 1, max: 20 }).map((step) => `*/${Math.min(step, to)}`),
    fc.tuple(fc.integer({ min: from, max: to }), fc.integer({ min: 0, max: 9 })).map(([low, more]) => {
      return `${low}-${Math.min(low + more, to)}`;
    }),
    fc
      .uniqueArray(fc.integer({ min: from, max: to }), { minLength: 2, maxLength: 4 })
      .map((list) => list.join(",")),
  );

/** To cron-parser, a day field with a star and a step does not begin with a star; in the manual of cron it does. */
const dayField = (from: number, to: number) => field(from, to).filter((text) => !text.startsWith("*/"));

test("where no clocks change, every expression runs when cron-parser says", () => {
  const cron = fc
    .tuple(field(0, 59), field(0, 23), dayField(1, 28), field(1, 12), dayField(0, 6))
    .map((fields) => fields.join(" "));
  const from = fc.integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2030, 0, 1) });
  fc.assert(
    fc.property(cron, from, fc.constantFrom("UTC", "Asia/Kathmandu"), (text, ms, tz) => {
      const theirs = CronExpressionParser.parse(text, { tz, currentDate: new Date(ms) });
      const expected = [1, 2, 3].map(() => theirs.next().getTime());
      expect(nextTicks(calendarOf({ cron: text, time_zone: tz }), ms, 3)).toEqual(expected);
    }),
    { numRuns: 300 },
  );
});

test("the newest of many ticks are the last ones that are found one by one", () => {
  const calendar = calendarOf({ cron: "*/7 3-9 * * 1-5", time_zone: "Europe/Berlin" });
  const from = Date.UTC(2026, 2, 20);
  const to = Date.UTC(2026, 3, 2, 5, 30);
  const all: number[] = [];
  for (const tick of nextTicks(calendar, from, 5_000)) if (tick <= to) all.push(tick);
  for (const count of [1, 10, 100]) expect(newestTicks(calendar, from, to, count)).toEqual(all.slice(-count));
  expect(newestTicks(calendar, from, to, 10_000)).toEqual(all);
});
