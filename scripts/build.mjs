/**
 * Builds `dist`. esbuild builds the program, the console and the library in about a second. For the package, the
 * compiler also checks the types and emits those of the library. Files are replaced one by one and stale files are
 * removed last, so a running broker and the CLI keep working.
 */
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { dirname, join, relative } from "node:path";
import { bin, ROOT, run, step, withLock } from "./steps.mjs";

const SRC = join(ROOT, "src");
const DIST = join(ROOT, "dist");
/** Its sources are bundled for browsers, not compiled. */
const CONSOLE = join(SRC, "console/");
/** npm does not pack files whose names start like this. */
const PROGRAM_STAMP = join(DIST, "._program");
const TYPES_STAMP = join(DIST, "._types");

/** What `npm start` runs. Types are not checked. */
export async function buildProgram() {
  const inputs = [
    "package-lock.json",
    "scripts/build.mjs",
    "scripts/bundle.mjs",
    "scripts/bundle-console.mjs",
  ];
  await once(PROGRAM_STAMP, inputs, "Building the broker and the console", async () => {
    fs.mkdirSync(DIST, { recursive: true });
    const { bundle, transpile } = await import("./bundle.mjs");
    const sources = files(SRC).filter((file) => !file.startsWith(CONSOLE));
    const modules = sources.filter((file) => file.endsWith(".ts"));
    const assets = sources.filter((file) => !file.endsWith(".ts"));
    await transpile(modules, DIST);
    for (const file of assets) {
      const target = join(DIST, relative(SRC, file));
      fs.mkdirSync(dirname(target), { recursive: true });
      fs.copyFileSync(file, target);
    }
    const bundled = await bundle();
    // Otherwise its service would keep 270 MB for as long as the broker runs in this process.
    await (await import("esbuild")).stop();
    fs.chmodSync(join(DIST, "errand.js"), 0o755);
    const outputs = [...modules.map(scriptOf), ...assets.map((file) => relative(SRC, file)), ...bundled];
    removeAllBut(outputs, (name) => !isDeclaration(name));
  });
}

/** Everything that the package contains. */
export async function build() {
  await buildProgram();
  const inputs = ["package-lock.json", "tsconfig.json", "tsconfig.build.json"];
  await once(TYPES_STAMP, inputs, "Checking types", async () => {
    const types = ["--emitDeclarationOnly", "--checkers", "1"];
    // Several checkers would each read the types of the libraries again. `check` also checks those.
    await run(bin("tsc"), ["-p", "tsconfig.build.json", ...types], ["inherit", 2, "inherit"]);
    const modules = files(SRC).filter((file) => file.endsWith(".ts") && !file.startsWith(CONSOLE));
    removeAllBut(
      modules.map((file) => scriptOf(file).replace(/\.js$/, ".d.ts")),
      isDeclaration,
    );
  });
}

const isDeclaration = (name) => name.endsWith(".d.ts");
const scriptOf = (file) => relative(SRC, file).replace(/\.ts$/, ".js");

/** Runs `work` unless its inputs, all of `src` and `settings`, are those of the last time. */
async function once(stamp, settings, name, work) {
  const isDone = () => fs.existsSync(stamp) && fs.readFileSync(stamp, "utf8") === fingerprint(settings);
  if (isDone()) return;
  await withLock(async () => {
    if (isDone()) return;
    // Taken before the files are read, so that an edit during the build makes the build stale.
    const inputs = fingerprint(settings);
    fs.rmSync(stamp, { force: true });
    await step(name, work);
    fs.writeFileSync(stamp, inputs);
  });
}

function fingerprint(settings) {
  const hash = createHash("sha256");
  for (const file of [...files(SRC), ...settings.map((name) => join(ROOT, name))]) {
    const { mtimeMs, size } = fs.statSync(file);
    hash.update(`${relative(ROOT, file)}\n${mtimeMs}\n${size}\n`);
  }
  return hash.digest("hex");
}

/** Removes files of an earlier build; `isOurs` chooses those of this one. */
function removeAllBut(names, isOurs) {
  const kept = new Set(names);
  for (const file of files(DIST)) {
    const name = relative(DIST, file);
    if (!name.startsWith("._") && isOurs(name) && !kept.has(name)) fs.rmSync(file, { force: true });
  }
}

function files(directory) {
  return fs
    .readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
