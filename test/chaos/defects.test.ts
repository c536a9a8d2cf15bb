/** The broken brokers can still be made from the build. `npm run prove -- chaos` shows that the rules find them. */
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { DEFECTS, isDefect, spoiled } from "./defects.ts";

const build = fileURLToPath(new URL("../../build", import.meta.url));

it.each(Object.keys(DEFECTS).filter(isDefect))(
  "%s: the build contains the code that the defect changes",
  (name) => {
    expect(spoiled(build, name).size).toBeGreaterThan(0);
  },
);
