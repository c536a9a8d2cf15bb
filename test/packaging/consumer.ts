/**
 * The package as its users get it: packed by npm, and installed by npm into an empty folder. Limit: needs npm and tar.
 */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { freshDir } from "../support/program.ts";
import { ROOT, startRegistry } from "./registry.ts";

const run = promisify(execFile);
const packedSchema = z.tuple([
  z.object({ filename: z.string(), files: z.array(z.object({ path: z.string() })) }),
]);

/** Nothing that an outer npm says of this project, and nothing of the broker's own. */
export function plainEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:npm_|ERRAND_)/i.test(name)));
}

/** `npm pack`, which builds first; the tarball goes into `folder`. */
export async function pack(folder: string): Promise<{ tarball: string; paths: readonly string[] }> {
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", folder], {
    cwd: ROOT,
    env: plainEnv(),
  });
  const [{ filename, files }] = packedSchema.parse(JSON.parse(stdout));
  return { tarball: join(folder, filename), paths: files.map(({ path }) => path) };
}

/** A folder that holds nothing but what `npm install <tarball>` puts there. */
export async function installElsewhere(): Promise<string> {
  const parent = freshDir();
  const folder = join(parent, "app");
  mkdirSync(folder);
  writeFileSync(join(parent, "npmrc"), "");
  const [{ tarball }, registry] = await Promise.all([pack(parent), startRegistry()]);
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
