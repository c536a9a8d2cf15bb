/**
 * Installs the packages of a lock file into a cache outside the tree, once for each lock file. No script of a package is run.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const FILES = ["package.json", "package-lock.json"];

/** `from`: the folder of the lock file. Returns the folder that has `node_modules`. */
export async function cachedInstall(name: string, from: string): Promise<string> {
  const hash = createHash("sha256")
    .update(readFileSync(join(from, "package-lock.json")))
    .digest("hex");
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "errand");
  const folder = join(cache, `${name}-${hash.slice(0, 16)}`);
  if (existsSync(folder)) return folder;
  const own = `${folder}.${process.pid}`;
  mkdirSync(own, { recursive: true });
  try {
    for (const file of FILES) copyFileSync(join(from, file), join(own, file));
    const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    await promisify(execFile)("npm", ["ci", ...flags], { cwd: own });
    // Another process may have been faster.
    if (!existsSync(folder)) renameSync(own, folder);
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
  return folder;
}
