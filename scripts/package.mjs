/**
 * The steps `prepack` and `postpack`: while npm packs, package.json is the published one. It names no dependency, because the
 * program and the library are bundles. It keeps the scripts, so that the next one after a killed packing restores the
 * project's own. Limit: if another process has the id of the one that packed, that takes until it ends.
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
