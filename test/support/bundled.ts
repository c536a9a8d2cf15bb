/**
 * Bundles a program that tests start as a process, with what it imports: it starts with half the CPU time, because Node
 * loads one file instead of a thousand. The bundles of a run lie beside its Redis. Limit: needs a build, if the program
 * imports it.
 */
import { existsSync } from "node:fs";
import { readFile, rename } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { inject } from "vitest";

const BUILD = fileURLToPath(new URL("../../build/", import.meta.url));
/** Some dependencies are CommonJS and call `require` for Node's own modules. */
const BANNER = `import { createRequire as createBundleRequire } from "node:module";
const require = createBundleRequire(import.meta.url);`;

/** Modules of the build read files beside them. */
const ownUrl: Plugin = {
  name: "own-url",
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, async ({ path }) => {
      if (!path.startsWith(BUILD)) return undefined;
      const text = await readFile(path, "utf8");
      return {
        contents: text.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)),
        loader: "js",
      };
    });
  },
};

const bundles = new Map<string, Promise<string>>();

/** The path of the bundle. */
export function bundled(program: URL): Promise<string> {
  const source = fileURLToPath(program);
  const made = bundles.get(source) ?? bundle(source);
  bundles.set(source, made);
  return made;
}

async function bundle(source: string): Promise<string> {
  const directory = dirname(inject("redisSocket"));
  const outfile = join(directory, `${basename(source, extname(source))}.mjs`);
  if (existsSync(outfile)) return outfile;
  // Another test process may write it at the same time.
  const own = `${outfile}.${process.pid}`;
  await build({
    ...{ entryPoints: [source], outfile: own, bundle: true, platform: "node", format: "esm" },
    ...{ target: "node20.19", banner: { js: BANNER }, plugins: [ownUrl], logLevel: "error" },
  });
  await rename(own, outfile);
  return outfile;
}
