/** Installs a real program into a cache, once for each set of versions. Nothing of it comes into this repository. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export const cacheFolder = (): string =>
  join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "errand", "agents");

/** The folder that has `node_modules`. No script of a package is run. */
export async function install(cache: string, packages: readonly string[]): Promise<string> {
  const folder = join(cache, packages.join("+").replaceAll(/[^\w.@+-]/g, "_"));
  if (existsSync(join(folder, "node_modules"))) return folder;
  const own = `${folder}.${process.pid}`;
  await mkdir(own, { recursive: true });
  try {
    await writeFile(join(own, "package.json"), JSON.stringify({ private: true }));
    const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    await promisify(execFile)("npm", ["install", ...flags, ...packages], { cwd: own });
    await rename(own, folder);
  } finally {
    await rm(own, { recursive: true, force: true });
  }
  return folder;
}
