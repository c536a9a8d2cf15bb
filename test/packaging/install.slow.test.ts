/** What `npm start` installs and builds: without the packages for development, and only what is not current. */
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

test("the packages that npm start installs take at most 80 MB", () => {
  const seen = new Set<number>();
  const sizes = production.map(([path]) => bytesIn(join(ROOT, path), "node_modules", seen));
  const total = sizes.reduce((sum, size) => sum + size, 0) / 1e6;
  expect(total).toBeGreaterThan(10);
  expect(total).toBeLessThanOrEqual(80);
});

test("npm start builds without the packages for development, once, and removes what is stale", () => {
  const folder = freshDir();
  for (const name of ["package.json", "package-lock.json", "src", "scripts"]) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  }
  for (const [path] of production) {
    if (path.includes("/node_modules/")) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    execFileSync("cp", ["-a", join(ROOT, path), join(folder, path)]);
  }
  const stale = ["index-of-old.js", "errand-AAAAAAAA.js", "console/console-AAAAAAAA.js"];
  mkdirSync(join(folder, "dist/console"), { recursive: true });
  for (const name of stale) writeFileSync(join(folder, "dist", name), "");
  const packages = Object.fromEntries(production);
  writeFileSync(join(folder, "node_modules/.package-lock.json"), JSON.stringify({ ...lock, packages }));
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
