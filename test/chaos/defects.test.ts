/** The broken brokers can still be made of the build. Limit: that the rules find them is seen by `npm run chaos`. */
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { DEFECTS, isDefect, spoiled } from "./defects.ts";

const dist = fileURLToPath(new URL("../../dist", import.meta.url));

it.each(Object.keys(DEFECTS).filter(isDefect))("%s: the build has what the defect changes", (name) => {
  expect(spoiled(dist, name).size).toBeGreaterThan(0);
});
