/** Who was notified of a question, by person. */
import { expect, test } from "vitest";
import { toldText as toldInCli } from "../../src/cli/show/answer-columns.ts";
import { toldText } from "../../src/console/answered/words.ts";
import type { SettledQuestion } from "../../src/schema/answered.ts";
import { notifiedPeople, unansweredText } from "../../src/schema/told-text.ts";

type Told = NonNullable<SettledQuestion["told"]>;
const told = (person: Told[number]["person"], channel: Told[number]["channel"], minute: number) => ({
  ...{ person, channel },
  at: `2026-11-29T08:${String(minute).padStart(2, "0")}:00.412Z`,
});

test("each person is there once, the first one first, with the first time of each channel", () => {
  const newestFirst = [
    told("approver:ann", "ntfy", 9),
    told("approver:ann", "web_push", 3),
    told("caller:bob", "slack", 2),
    told("approver:ann", "ntfy", 1),
  ];
  expect(notifiedPeople(newestFirst).map(({ person, by }) => [person, ...by])).toEqual([
    ["approver:ann", ["ntfy", "2026-11-29T08:01:00.412Z"], ["web_push", "2026-11-29T08:03:00.412Z"]],
    ["caller:bob", ["slack", "2026-11-29T08:02:00.412Z"]],
  ]);
  expect(toldText(newestFirst)).toBe("Notified: approver ann by ntfy, web push; bob by slack.");
  expect(toldInCli({ told: newestFirst })).toBe("told approver:ann by ntfy, web push; caller:bob by slack");
});

test("of many people, the console names five; of nobody, it says so", () => {
  const many = Array.from({ length: 20 }, (_, n) => told(`approver:p${n}`, "email", n)).reverse();
  expect(toldText(many.slice(1))).toMatch(
    /^Notified: approver p0 by email; .*approver p4 by email; and 14 more\.$/,
  );
  // There may have been others: the broker notes no more than these.
  expect(toldText(many)).toMatch(/approver p4 by email; and at least 15 more\.$/);
  expect(toldText([])).toBe("Nobody was notified.");
});

test("the text of a failure says that nobody answered, in how long, and who was notified", () => {
  const question = { isDeadline: false, open_ms: 7_200_000 };
  expect(unansweredText({ ...question, told: [told("approver:ann", "web_push", 1)] })).toBe(
    "Nobody answered the question within 2 h. Notified: approver:ann by web push.",
  );
  expect(unansweredText({ ...question, isDeadline: true, told: [] })).toBe(
    "The deadline passed, and nobody answered the question within 2 h. Nobody was notified of it.",
  );
  expect(unansweredText({ ...question, needed: 2, given: 1 })).toBe(
    "The question had 1 of 2 approvals within 2 h.",
  );
});
