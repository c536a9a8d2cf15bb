/**
 * Builds `dist`, which the package contains: esbuild builds the program, the console and the library in about a second,
 * and the compiler checks the types and emits those of the library. `build` has each module by itself, for tests and
 * generators. Files are replaced one by one and stale files are removed last, so a running broker and the CLI keep
 * working.
 */
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { dirname, join, relative } from "node:path";
import { bin, ROOT, run, step, withLock } from "./steps.mjs";

const SRC = join(ROOT, "src");
const DIST = join(ROOT, "dist");
const BUILD = join(ROOT, "build");
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
    const { bundle } = await import("./bundle.mjs");
    const bundled = await bundle();
    // Otherwise its service would keep 270 MB for as long as the broker runs in this process.
    await (await import("esbuild")).stop();
    fs.chmodSync(join(DIST, "errand.js"), 0o755);
    removeAllBut(DIST, [...bundled, ...copyAssets(DIST)], (name) => !name.startsWith("types/"));
  });
}

/** Everything that the package contains, and the single modules. */
export async function build() {
  await buildProgram();
  const own = ["scripts/build.mjs", "scripts/bundle.mjs", "scripts/types.mjs"];
  const inputs = ["package-lock.json", "tsconfig.json", "tsconfig.build.json", ...own];
  await once(TYPES_STAMP, inputs, "Checking types", async () => {
    const modules = sources().filter((file) => file.endsWith(".ts"));
    const { transpile } = await import("./bundle.mjs");
    await transpile(modules, BUILD);
    await (await import("esbuild")).stop();
    const types = ["--emitDeclarationOnly", "--checkers", "1"];
    // Several checkers would each read the types of the libraries again. `check` also checks those.
    await run(bin("tsc"), ["-p", "tsconfig.build.json", ...types], ["inherit", 2, "inherit"]);
    const scripts = modules.map((file) => relative(SRC, file).replace(/\.ts$/, ".js"));
    const declarations = scripts.map((name) => name.replace(/\.js$/, ".d.ts"));
    removeAllBut(BUILD, [...scripts, ...declarations, ...copyAssets(BUILD)]);
    const { writeTypes } = await import("./types.mjs");
    const written = writeTypes(BUILD, join(DIST, "types"));
    removeAllBut(join(DIST, "types"), written);
  });
}

/** What is compiled or read at run time. */
const sources = () => files(SRC).filter((file) => !file.startsWith(CONSOLE) && !file.endsWith(".d.ts"));

/** The files that modules read from beside them. Returns their names. */
function copyAssets(folder) {
  const assets = sources().filter((file) => !file.endsWith(".ts"));
  return assets.map((file) => {
    const name = relative(SRC, file);
    fs.mkdirSync(dirname(join(folder, name)), { recursive: true });
    // Comments are for readers of the source: without them the scripts are a third shorter.
    const isShort = folder === DIST && name.endsWith(".lua");
    const text = fs.readFileSync(file, "utf8");
    fs.writeFileSync(join(folder, name), isShort ? text.replaceAll(/^[ \t]*--.*\n/gm, "") : text);
    return name;
  });
}

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
function removeAllBut(folder, names, isOurs = () => true) {
  const kept = new Set(names);
  for (const file of files(folder)) {
    const name = relative(folder, file);
    if (!name.startsWith("._") && isOurs(name) && !kept.has(name)) fs.rmSync(file, { force: true });
  }
  const folders = fs.readdirSync(folder, { recursive: true, withFileTypes: true });
  for (const { parentPath, name } of folders.filter((entry) => entry.isDirectory()).reverse()) {
    const path = join(parentPath, name);
    if (fs.readdirSync(path).length === 0) fs.rmdirSync(path);
  }
}

function files(directory) {
  return fs
    .readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
