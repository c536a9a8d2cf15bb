/** Long walks around a resting pointer: some hundred moves. Needs a build. */
import { expect, test } from "vitest";
import { SKIP } from "../support/browser.ts";
import { SEED, walk } from "./inbox-walk.ts";

test.skipIf(SKIP).each(["list", "column"] as const)(
  `%s: every answer goes to the question under the pointer (seed ${SEED})`,
  { timeout: 300_000 },
  async (view) => {
    const { steps, answers, presses } = await walk(view, 3, 70);
    expect(steps).toBe(210);
    expect(presses).toBeGreaterThan(answers);
    expect(answers).toBeGreaterThan(6);
  },
);
