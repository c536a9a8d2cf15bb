/**
 * Broken brokers: a copy of the build in which one thing is wrong, and the rule of the checker that has to see it.
 * Limit: the text that is replaced must be there, so a defect that no longer applies is noticed.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RuleName } from "./check/check.ts";

interface Defect {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly rule: RuleName;
}

export const DEFECTS = {
  "skips-a-seq": {
    file: "lifecycle/transition.lua",
    find: "put('version', rec.version + 1)",
    replace: "put('version', rec.version + (rec.version == 2 and 2 or 1))",
    rule: "gap",
  },
} as const satisfies Record<string, Defect>;

export const isDefect = (name: string): name is keyof typeof DEFECTS => Object.hasOwn(DEFECTS, name);

export function spoil(dist: string, name: keyof typeof DEFECTS): void {
  const { file, find, replace } = DEFECTS[name];
  const path = join(dist, file);
  const text = readFileSync(path, "utf8");
  if (!text.includes(find))
    throw new Error(`${name}: ${file} no longer holds "${find}"; write the defect again.`);
  writeFileSync(
    path,
    text.replace(find, () => replace),
  );
}
