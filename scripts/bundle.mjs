/**
 * Bundles the program with its dependencies: `dist/errand.js` loads a few files instead of about a thousand, so each
 * command starts in about half the time. The library's modules stay single files, with their dependencies outside. The
 * console is bundled by bundle-console.mjs.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";
import { bundleConsole } from "./bundle-console.mjs";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const SRC = join(ROOT, "src");

/** Some dependencies are CommonJS and call `require` for Node's own modules. */
const BANNER = `import { createRequire as createBundleRequire } from "node:module";
const require = createBundleRequire(import.meta.url);`;

/**
 * Modules of `src` read files beside them by `import.meta.url`. In the bundle, that is the URL of a file directly in
 * `dist`, so it is replaced by the module's own URL.
 */
const ownUrl = {
  name: "own-url",
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const place = relative(SRC, path).replace(/\.ts$/, ".js");
      if (place.startsWith("..")) return undefined;
      const url = `new URL(${JSON.stringify(`./${place}`)}, import.meta.url).href`;
      return { contents: readFileSync(path, "utf8").replaceAll("import.meta.url", url), loader: "ts" };
    });
  },
};

/** The specifier of a module beside the file, as esbuild prints it. */
const SPECIFIER = /^((?:import|export|\} from) .*|\} from |.*\bimport\()"(\.{1,2}\/[^"]+)\.ts"/gm;

/** Strips the types, and names the files that are written. */
export async function transpile(modules, folder) {
  const options = {
    loader: "ts",
    format: "esm",
    target: "es2023",
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  };
  await Promise.all(
    modules.map(async (path) => {
      const { code } = await transform(readFileSync(path, "utf8"), { ...options, sourcefile: path });
      const target = join(folder, relative(SRC, path)).replace(/\.ts$/, ".js");
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, code.replaceAll(SPECIFIER, '$1"$2.js"'));
    }),
  );
}

/** Returns the names of the files in `dist`. */
export async function bundle() {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: { errand: "src/main.ts" },
    outdir: "dist",
    chunkNames: "errand-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20.19",
    banner: { js: BANNER },
    plugins: [ownUrl],
    metafile: true,
    logLevel: "warning",
  });
  const page = await bundleConsole();
  const inputs = [...Object.keys(metafile.inputs), ...page.inputs];
  writeFileSync(join(ROOT, "dist/licenses.txt"), licenses(inputs));
  const program = Object.keys(metafile.outputs).map((path) => basename(path));
  return [...program, "licenses.txt", ...page.outputs.map((name) => `console/${name}`)];
}

/** The licences of the packages of which the bundle has copies. */
function licenses(inputs) {
  const folders = new Set();
  for (const input of inputs) {
    const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? [];
    if (folder !== undefined) folders.add(folder);
  }
  return [...folders]
    .sort()
    .map((folder) => {
      const path = join(ROOT, folder);
      const manifest = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
      const { name, version, license } = manifest;
      const files = readdirSync(path).filter((file) => /^licen[cs]e/i.test(file));
      const texts = files.map((file) => readFileSync(join(path, file), "utf8").trim());
      if (texts.length === 0) texts.push(textOf(manifest));
      return [`${name} ${version} (${license})`, ...texts].join("\n\n");
    })
    .join("\n\n---\n\n");
}

/** The licence of a package that names it and has no file of it. */
function textOf({ name, license, author }) {
  if (license !== "MIT" || typeof author !== "string")
    throw new Error(`${name}: the text of its licence is missing`);
  return MIT.replace("HOLDER", author);
}

const MIT = `MIT License

Copyright (c) HOLDER

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.`;
