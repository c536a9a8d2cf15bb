/**
 * The workflows in .github fit the project: the commands that they run exist. Limit: the test parses them and does
 * not run them.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { ROOT } from "./registry.ts";

const FOLDER = ".github/workflows";

const stepSchema = z.strictObject({
  name: z.string().optional(),
  uses: z
    .string()
    .regex(/^actions\/[a-z-]+@v\d+$/)
    .optional(),
  with: z.record(z.string(), z.unknown()).optional(),
  if: z.string().optional(),
  run: z.string().optional(),
});
const workflowSchema = z.strictObject({
  name: z.string(),
  on: z.record(z.string(), z.unknown()),
  permissions: z.strictObject({ contents: z.literal("read") }),
  concurrency: z.record(z.string(), z.unknown()).optional(),
  jobs: z.record(
    z.string(),
    z.strictObject({
      name: z.string().optional(),
      "runs-on": z.string(),
      // A job that hangs must end before the default of six hours.
      "timeout-minutes": z.int().max(60),
      strategy: z
        .object({ matrix: z.looseObject({ node: z.array(z.string()), server: z.array(z.unknown()) }) })
        .loose()
        .optional(),
      env: z.record(z.string(), z.string()).optional(),
      steps: z.array(stepSchema),
    }),
  ),
});

const packageSchema = z.object({
  scripts: z.record(z.string(), z.string()),
  engines: z.object({ node: z.string() }),
});
const { scripts, engines } = packageSchema.parse(
  JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")),
);
const workflows = readdirSync(join(ROOT, FOLDER)).map(
  (file) => [file, workflowSchema.parse(parse(readFileSync(join(ROOT, FOLDER, file), "utf8")))] as const,
);

test.each(workflows)("%s runs scripts that package.json has", (_file, { jobs }) => {
  const runs = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));
  const named = runs.flatMap((run) => [...run.matchAll(/npm run (\S+)/g)].map(([, name]) => String(name)));
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
  // Each step does one thing: it runs, or it uses.
  for (const { steps } of Object.values(jobs)) {
    for (const { run, uses } of steps) expect([run, uses].filter(Boolean)).toHaveLength(1);
  }
});

test("the checks of a change run on every supported version of Node and every kind of server", () => {
  const check = Object.fromEntries(workflows)["check.yml"]?.jobs.check;
  expect(check?.steps.at(-1)?.run).toBe("npm run check");
  expect(check?.strategy?.matrix.node).toEqual(["20", "22", "24"]);
  expect(JSON.stringify(check?.strategy?.matrix.server)).toMatch(/Redis 7.*Redis 8.*Valkey/);
  expect(engines.node).toBe(">=20.19");
});
