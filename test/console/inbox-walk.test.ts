/** A short walk around a resting pointer; inbox-walk.slow.test.ts walks further. Needs a build. */
import { expect, test } from "vitest";
import { SKIP } from "../support/browser.ts";
import { SEED, walk } from "./inbox-walk.ts";

test.skipIf(SKIP)(`every answer goes to the question under the pointer (seed ${SEED})`, async () => {
  const { answers, presses } = await walk("column", 1, 30);
  // It answers some; otherwise it shows nothing.
  expect(presses).toBeGreaterThan(answers);
  expect(answers).toBeGreaterThan(0);
});
