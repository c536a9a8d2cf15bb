/**
 * npm calls this before and after it packs: meanwhile, package.json is the one that users get. The program and the library
 * are bundles, so it names no dependency and no script.
 */
import * as fs from "node:fs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { ROOT } from "./steps.mjs";

const MANIFEST = join(ROOT, "package.json");
/** The project's own, while the other one is in its place. */
const KEPT = join(ROOT, ".package.json");
const OF_THE_PROJECT = ["private", "scripts", "dependencies", "devDependencies"];

/** A packing that was killed leaves the other one in its place; no packing takes this long. */
const ABANDONED_MS = 10 * 60_000;

export function restore() {
  if (fs.existsSync(KEPT)) fs.renameSync(KEPT, MANIFEST);
}

export function restoreAbandoned() {
  const kept = fs.statSync(KEPT, { throwIfNoEntry: false });
  if (kept && Date.now() - kept.mtimeMs > ABANDONED_MS) restore();
}

export async function replace() {
  restore();
  await build();
  const all = Object.entries(JSON.parse(fs.readFileSync(MANIFEST, "utf8")));
  const published = Object.fromEntries(all.filter(([name]) => !OF_THE_PROJECT.includes(name)));
  fs.copyFileSync(MANIFEST, KEPT);
  const draft = `${KEPT}.draft`;
  fs.writeFileSync(draft, `${JSON.stringify(published, null, 2)}\n`);
  fs.renameSync(draft, MANIFEST);
}
