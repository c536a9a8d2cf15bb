/**
 * Installs the packages of package-lock.json: those of the broker, which also build it, or those for development as well.
 * Limit: it compares versions, not files.
 */
import * as fs from "node:fs";
import { join } from "node:path";
import { npm, ROOT, step, withLock } from "./steps.mjs";

/**
 * Without `dev`, only what the broker and its build need. `npm ci` would refuse a lock file that lacks the optional packages
 * of another platform; this installs the same versions and does not change the lock file.
 */
export async function install({ dev }) {
  if (missing(dev) === 0) return;
  await withLock(async () => {
    const count = missing(dev);
    if (count === 0) return;
    // With --omit=dev, npm would remove installed development packages, which a running test may need.
    const all = dev || packages("node_modules/.package-lock.json").some(([, { dev }]) => dev === true);
    const wanted = required(all);
    const done = () => wanted.filter((path) => fs.existsSync(join(ROOT, path, "package.json"))).length;
    await step(
      `Installing ${wanted.length} packages${all ? ", for development too" : ""}`,
      // No package needs its install script. Warnings are about development tools and newer versions of Node.
      () =>
        npm(
          [
            ...["install", "--no-save", all ? "--include=dev" : "--omit=dev", "--ignore-scripts"],
            ...["--no-audit", "--no-fund", "--no-progress", "--loglevel=error"],
          ],
          ["inherit", "ignore", "inherit"],
        ),
      () => `${done()} of ${wanted.length}`,
    );
  });
}

/** How many packages are missing or of another version, by the hidden lock file, which npm writes last. */
function missing(dev) {
  const found = new Map(packages("node_modules/.package-lock.json"));
  return packages("package-lock.json").filter(([path, wanted]) => {
    if (!dev && wanted.dev) return false;
    const there = found.get(path);
    // Optional packages of other platforms are not installed.
    if (there === undefined) return wanted.optional !== true;
    return there.version !== wanted.version || there.integrity !== wanted.integrity;
  }).length;
}

function required(dev) {
  return packages("package-lock.json")
    .filter(([, entry]) => entry.optional !== true && (dev || !entry.dev))
    .map(([path]) => path);
}

/** The entries of a lock file, without the project itself; none if it cannot be read. */
function packages(path) {
  try {
    const { packages } = JSON.parse(fs.readFileSync(join(ROOT, path), "utf8"));
    return Object.entries(packages).filter(([path]) => path !== "");
  } catch {
    return [];
  }
}
