/** Installs the generators into a cache outside the tree, once for each lock file. No script of a package is run. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const HERE = fileURLToPath(new URL("./", import.meta.url));
const FILES = ["package.json", "package-lock.json"];

/** The folder that has `node_modules`. */
export async function installGenerators(): Promise<string> {
  const hash = createHash("sha256")
    .update(readFileSync(join(HERE, "package-lock.json")))
    .digest("hex");
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "errand");
  const folder = join(cache, `openapi-clients-${hash.slice(0, 16)}`);
  if (existsSync(folder)) return folder;
  const own = `${folder}.${process.pid}`;
  mkdirSync(own, { recursive: true });
  try {
    for (const name of FILES) copyFileSync(join(HERE, name), join(own, name));
    const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    await promisify(execFile)("npm", ["ci", ...flags], { cwd: own });
    renameSync(own, folder);
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
  return folder;
}
