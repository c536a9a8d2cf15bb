/** `./errand` in a clone: it builds what is missing, and says so. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freshDir } from "../support/program.ts";
import { plainEnv } from "./consumer.ts";
import { ROOT } from "./registry.ts";

test("it runs from any folder, also by a link, and builds only what is missing", () => {
  const clone = join(freshDir(), "a clone");
  mkdirSync(clone);
  for (const name of ["errand", "package.json", "package-lock.json", "src", "scripts"])
    cpSync(join(ROOT, name), join(clone, name), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(clone, "node_modules"));
  const elsewhere = freshDir();
  symlinkSync(join(clone, "errand"), join(elsewhere, "linked"));
  const run = (program: string) => {
    const ran = spawnSync(program, ["--version"], { cwd: elsewhere, env: plainEnv(), encoding: "utf8" });
    return [ran.status, ran.stdout, ran.stderr];
  };
  expect(run(join(clone, "errand"))).toEqual([0, "0.1.0\n", "Building the broker and the console ...\n"]);
  expect(run("./linked")).toEqual([0, "0.1.0\n", ""]);
}, 120_000);
