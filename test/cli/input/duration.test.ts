/** Durations of options. */
import { expect, test } from "vitest";
import { duration } from "../../../src/cli/input/duration.ts";

test.each([
  ["90s", 90],
  ["30m", 1800],
  ["2h", 7200],
  ["3d", 259_200],
  ["1.5h", 5400],
  ["45", 45],
  ["1h30m", 5400],
  ["1d12h30m5s", 131_405],
])("%s is %i seconds", (text, seconds) => {
  expect(duration(text)).toBe(seconds);
});

test.each(["", "0", "0s", "-1", "3 d", "3w", "s", "1e3", "Infinity", "30m1h", "1h1h", "1.5h30m"])(
  "%j is refused",
  (text) => {
    expect(() => duration(text)).toThrow("for example 90s, 30m, 1h30m or 3d");
  },
);
