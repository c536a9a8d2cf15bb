/** Durations as people say them. */
import { expect, test } from "vitest";
import { budgetText } from "../../src/client/budget-text.ts";
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

test("a budget says what was used and the limits; without a limit, nothing used is left out", () => {
  const used = { tokens: 0, attempts: 1 };
  expect(budgetText({ limit: { seconds: 5 }, used })).toBe("1 attempt, at most 5 s");
  expect(budgetText({ limit: { tokens: 900, attempts: 3 }, used })).toBe("0 of 900 tokens, 1 of 3 attempts");
  const cost = { ...used, tokens: 1_200, cost: 0, currency: "USD" };
  expect(budgetText({ limit: { tokens: 1_000 }, used: cost })).toBe("1,200 of 1,000 tokens, 1 attempt");
  expect(budgetText({ limit: { cost: 2, currency: "USD" }, used: cost })).toBe(
    "1,200 tokens, 0 of 2 USD, 1 attempt",
  );
  expect(budgetText({ used: { tokens: 0, attempts: 0 } })).toBe("nothing yet");
});
