/** What `npm start` and `npm run demo` install and build: without the packages for development, and only what is not current. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { freshDir } from "../support/program.ts";
import { bytesIn, plainEnv } from "./consumer.ts";
import { ROOT } from "./registry.ts";

const lockSchema = z.looseObject({
  packages: z.record(z.string(), z.looseObject({ dev: z.boolean().optional() })),
});
const lock = lockSchema.parse(JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")));
/** The packages that `npm install --omit=dev` installs on this platform. */
const production = Object.entries(lock.packages).filter(
  ([path, { dev }]) => path !== "" && !dev && existsSync(join(ROOT, path)),
);

test("the packages that npm start installs take about 90 MB on disk", () => {
  const seen = new Set<number>();
  const sizes = production.map(([path]) => bytesIn(join(ROOT, path), "node_modules", seen, 4_096));
  const total = sizes.reduce((sum, size) => sum + size, 0) / 1e6;
  expect(total).toBeGreaterThan(80);
  expect(total).toBeLessThanOrEqual(95);
});

/** A clone after `npm start` has installed what it needs, not built yet. */
function cloned(more: readonly string[] = []): string {
  const folder = freshDir();
  for (const name of ["package.json", "package-lock.json", "src", "scripts", ...more]) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  }
  for (const [path] of production) {
    if (path.includes("/node_modules/")) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    execFileSync("cp", ["-a", join(ROOT, path), join(folder, path)]);
  }
  const packages = Object.fromEntries(production);
  writeFileSync(join(folder, "node_modules/.package-lock.json"), JSON.stringify({ ...lock, packages }));
  return folder;
}

test("npm start builds without the packages for development, once, and removes what is stale", () => {
  const folder = cloned();
  const stale = ["index-of-old.js", "errand-AAAAAAAA.js", "console/console-AAAAAAAA.js"];
  mkdirSync(join(folder, "dist/console"), { recursive: true });
  for (const name of stale) writeFileSync(join(folder, "dist", name), "");
  const start = () => {
    const args = ["scripts/run.mjs", "start", "--help"];
    const run = spawnSync(process.execPath, args, { cwd: folder, env: plainEnv(), encoding: "utf8" });
    return [run.status, run.stderr, run.stdout.split("\n")[0]];
  };
  const help = "Usage: errand serve [options]";
  expect(start()).toEqual([0, "Building the broker and the console ...\n", help]);
  expect(start()).toEqual([0, "", help]);
  const library = 'import { Delegator } from "errand-broker"; console.log(typeof Delegator)';
  const imported = spawnSync(process.execPath, ["--input-type=module", "-e", library], { cwd: folder });
  expect(String(imported.stdout)).toBe("function\n");

  expect(stale.filter((name) => existsSync(join(folder, "dist", name)))).toEqual([]);
}, 240_000);

test("npm run demo installs nothing more", () => {
  const args = ["scripts/run.mjs", "demo"];
  const run = spawnSync(process.execPath, args, {
    cwd: cloned(["bench", "examples"]),
    env: plainEnv(),
    encoding: "utf8",
  });
  expect([run.status, run.stderr]).toEqual([0, "Building the broker and the console ...\n"]);
  expect(run.stdout).toContain("demo: ok, 6 delegations ended as expected");
}, 240_000);
