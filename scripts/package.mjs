/**
 * npm calls this before and after it packs: meanwhile, package.json is the one that users get. The program and the library
 * are bundles, so it names no dependency. It keeps the scripts: if a packing is killed, the next task restores the project's
 * own. Limit: the copy names the process that packs, whose id another process may have by then.
 */
import * as fs from "node:fs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { ROOT } from "./steps.mjs";

const MANIFEST = join(ROOT, "package.json");
/** The project's own, while the other one is in its place: `.package.<process id of npm>.json`. */
const KEPT = /^\.package\.(\d+)\.json$/;
const OF_THE_PROJECT = ["private", "dependencies", "devDependencies"];

const kept = () => fs.readdirSync(ROOT).find((name) => KEPT.test(name));

/** After a packing, or when the one that left it has ended. */
export function restore() {
  const name = kept();
  if (name !== undefined) fs.renameSync(join(ROOT, name), MANIFEST);
}

export function restoreAbandoned() {
  const name = kept();
  if (name !== undefined && !isAlive(Number(KEPT.exec(name)?.[1]))) restore();
}

export async function replace() {
  await build();
  // Two at once would restore each other's.
  for (restoreAbandoned(); kept() !== undefined; restoreAbandoned())
    await new Promise((resolve) => setTimeout(resolve, 200));
  const all = Object.entries(JSON.parse(fs.readFileSync(MANIFEST, "utf8")));
  const published = Object.fromEntries(all.filter(([name]) => !OF_THE_PROJECT.includes(name)));
  const draft = join(ROOT, ".package.draft.json");
  fs.writeFileSync(draft, `${JSON.stringify(published, null, 2)}\n`);
  fs.copyFileSync(MANIFEST, join(ROOT, `.package.${process.ppid}.json`));
  fs.renameSync(draft, MANIFEST);
}

function isAlive(id) {
  try {
    return process.kill(id, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}
