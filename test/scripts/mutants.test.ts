/** The list of mutants fits the sources; `npm run prove -- mutants` tries them. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";

const ROOT = join(import.meta.dirname, "../..");
const textOf = (path: string): string => readFileSync(join(ROOT, path), "utf8");

const mutantsSchema = z.array(
  z.strictObject({
    name: z.string(),
    file: z.string(),
    from: z.string(),
    to: z.string(),
    tests: z.array(z.string()).min(1),
    only: z.string().optional(),
  }),
);

test("each mutant changes one place in the sources, and names tests that exist", () => {
  const mutants = mutantsSchema.parse(JSON.parse(textOf("scripts/mutants.json")));
  const stale = mutants.filter(({ file, from, to }) => textOf(file).split(from).length !== 2 || from === to);
  expect(
    stale.map(({ name, file }) => `${file}: ${name}`),
    "the sources have changed: bring `from` and `to` in scripts/mutants.json up to date",
  ).toEqual([]);
  expect(mutants.flatMap(({ tests }) => tests).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
});
