/** Quiet hours on the days on which clocks change, compared with what the clock on the wall shows, minute by minute. */
import { expect, test } from "vitest";
import { untilLoud } from "../../../src/engine/subscriptions/quiet.ts";
import { changeBetween } from "../../../src/util/calendar/zone.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const SPANS = [
  ...["22:00-07:00", "22:00-02:30", "02:15-02:45", "02:30-06:00", "01:30-02:00", "02:00-03:00"],
  ...["23:30-00:30", "22:00-00:00", "00:00-01:00", "03:00-02:00", "00:30-23:30"],
];

/** Both changes of a year. */
function changesOf(zone: string): number[] {
  const [from, to] = [Date.UTC(2027, 0, 1), Date.UTC(2028, 0, 1)];
  const first = changeBetween(zone, from, to) ?? Number.NaN;
  return [first, changeBetween(zone, first, to) ?? Number.NaN];
}

const minutesOf = (time = "") => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

test.each([
  ...[
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "America/Havana",
    "Antarctica/Troll",
  ],
])("%s", (zone) => {
  const format = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit" });
  for (const change of changesOf(zone)) {
    const start = change - 26 * HOUR;
    const shown = Array.from({ length: 80 * 60 }, (_, n) => minutesOf(format.format(start + n * MINUTE)));
    const isRepeated = (n: number) => Math.abs(start + n * MINUTE - change) <= 2 * HOUR;
    for (const span of SPANS) {
      const [from = "", to = ""] = span.split("-");
      const [first, end] = [minutesOf(from), minutesOf(to)];
      const quiet = shown.map((minute) =>
        first < end ? minute >= first && minute < end : minute >= first || minute < end,
      );
      for (let n = 0; n < 50 * 60; n += 13) {
        const wait = untilLoud({ from, to, time_zone: zone }, start + n * MINUTE + 1_234);
        const about = `${span} at ${new Date(start + n * MINUTE).toISOString()}`;
        if (!quiet[n]) {
          expect(wait, about).toBe(0);
          continue;
        }
        // Exactly when it ends, and not before or between.
        const ends = n + (wait + 1_234) / MINUTE;
        expect(Number.isInteger(ends) && quiet[ends - 1] && !quiet[ends], about).toBe(true);
        for (let m = n; m < ends; m += 1) if (!quiet[m]) expect(isRepeated(m), about).toBe(true);
      }
    }
  }
});
