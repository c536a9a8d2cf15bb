/** The line that a wait shows: state, bar, step, time left, in as many columns as there are. */
import { expect, test } from "vitest";
import { displayWidth } from "../../../src/cli/show/text.ts";
import { waitText } from "../../../src/cli/show/wait-text.ts";

const AT = { elapsedMs: 12_004, ageMs: 0 };

test.each([
  [{ state: "submitted" }, "waiting 12 s: submitted"],
  [{ state: "submitted", why: "Nobody polls." }, "waiting 12 s: submitted: Nobody polls."],
  [{ state: "working", attempt: 2 }, "waiting 12 s: working, attempt 2"],
  [{ state: "working", progress: { done: 3 } }, "waiting 12 s: working 3/?"],
  [{ state: "working", progress: { done: 0, total: 0 } }, "waiting 12 s: working 0/0"],
  [{ state: "working", progress: { done: 9, total: 4 } }, "waiting 12 s: working [##########] 9/4"],
  [
    { state: "working", progress: { done: 4, total: 10, current_step: "index", message: "a\u001b[2Jb\nc" } },
    "waiting 12 s: working [####------] 4/10 index: ab c",
  ],
  [
    { state: "working", progress: { message: "m", eta_seconds: 90 } },
    "waiting 12 s: working m, about 2 min left",
  ],
])("%j", (status, text) => {
  expect(waitText(status, AT, 79)).toBe(text);
});

test("the time left runs down, and is not shown when it is over", () => {
  const status = { state: "working", progress: { eta_seconds: 90 } };
  expect(waitText(status, { ...AT, ageMs: 80_000 }, 79)).toBe("waiting 12 s: working, about 10 s left");
  expect(waitText(status, { ...AT, ageMs: 95_000 }, 79)).toBe("waiting 12 s: working");
});

test.each([79, 119, 40, 20])("in %i columns, the step is cut first", (columns) => {
  const progress = { done: 1, total: 2, message: "長い文章を書く ".repeat(20), eta_seconds: 40 };
  const text = waitText({ state: "working", progress }, AT, columns);
  expect(displayWidth(text)).toBeLessThanOrEqual(columns);
  if (columns >= 79)
    expect(text).toMatch(/^waiting 12 s: working \[#####-----\] 1\/2 長.*…, about 40 s left$/);
});
