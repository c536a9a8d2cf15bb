/** Durations as people say them. */
import { expect, test } from "vitest";
import { durationText } from "../../src/client/words.ts";

test.each([
  [0, "0 ms"],
  [999.6, "1 s"],
  [1_540, "1.5 s"],
  [30_000, "30 s"],
  [59_970, "1 min"],
  [90_500, "1 min 30 s"],
  [3_600_000, "1 h"],
  [7_265_000, "2 h 1 min 5 s"],
  [86_400_000, "1 d"],
  [131_405_000, "1 d 12 h 30 min 5 s"],
])("%d ms are %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});
