/** The package as its users get it: packed by npm, and installed by npm into an empty folder. Needs npm and tar. */
import { execFile } from "node:child_process";
import { lstatSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { freshDir } from "../support/program.ts";
import { ROOT, startRegistry } from "./registry.ts";

const run = promisify(execFile);
const packedSchema = z.tuple([
  z.object({ filename: z.string(), files: z.array(z.object({ path: z.string() })) }),
]);

/** The environment without an outer npm's variables about this project, and without ERRAND_*. */
export function plainEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:npm_|ERRAND_)/i.test(name)));
}

/**
 * The bytes of the files below a folder, without folders that are named `except`. A file with several names counts once.
 * With the size of a file system's blocks, what they take on the disk.
 */
export function bytesIn(folder: string, except = "", seen = new Set<number>(), block = 1): number {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== except)
    .map((entry) => join(entry.parentPath, entry.name))
    .reduce((sum, path) => {
      const found = lstatSync(path);
      if (found.isDirectory()) return sum + (block > 1 ? block : 0) + bytesIn(path, except, seen, block);
      const isCounted = seen.has(found.ino);
      seen.add(found.ino);
      return isCounted ? sum : sum + Math.ceil(found.size / block) * block;
    }, 0);
}

/** Runs `npm pack`, which builds first; the tarball is written to `folder`. */
export async function pack(folder: string): Promise<{ tarball: string; paths: readonly string[] }> {
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", folder], {
    cwd: ROOT,
    env: plainEnv(),
  });
  const [{ filename, files }] = packedSchema.parse(JSON.parse(stdout));
  return { tarball: join(folder, filename), paths: files.map(({ path }) => path) };
}

/** A folder with an empty package.json, and what `npm install <tarball>` puts beside it. */
export async function installElsewhere(tarball: string): Promise<string> {
  const parent = freshDir();
  const folder = join(parent, "app");
  mkdirSync(folder);
  // Without it, npm installs into the nearest folder above that has one.
  writeFileSync(join(folder, "package.json"), "{}");
  writeFileSync(join(parent, "npmrc"), "");
  const registry = await startRegistry();
  const settings = [
    `--registry=${registry}`,
    `--cache=${join(parent, "cache")}`,
    `--userconfig=${join(parent, "npmrc")}`,
    "--no-audit",
    "--no-fund",
  ];
  await run("npm", ["install", tarball, ...settings], { cwd: folder, env: plainEnv() });
  return folder;
}
