/**
 * Bundles the program and the library with their dependencies, so the package needs no other one, and a command loads a
 * few files instead of about a thousand. Names stay as they are, for readable stack traces. The console is bundled by
 * bundle-console.mjs.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";
import { bundleConsole } from "./bundle-console.mjs";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const SRC = join(ROOT, "src");

/** Some dependencies are CommonJS and call `require` for Node's own modules. */
const BANNER = `import { createRequire as createBundleRequire } from "node:module";
const require = createBundleRequire(import.meta.url);`;

/** What every command needs, and what most of them need. Each is one file of the build. */
const START = "cli/run.ts";
const COMMANDS = "cli/commands/index.ts";
/** Loaded without the commands: before them, or by the client of those that are in START. */
const WITHOUT_COMMANDS = /^(?:cli\/commands\/index|serve\/own-command|client\/[\w-]+)\.ts$/;

/** The modules that are loaded when they are needed: an `import()` names them. */
function loadedLater() {
  const files = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const found = files.flatMap((name) => {
    const named = readFileSync(join(SRC, name), "utf8").matchAll(/\bimport\("(\.[^"]+\.ts)"\)/g);
    return [...named].map(([, to]) => join(dirname(name), to));
  });
  return new Set(found);
}

/**
 * esbuild puts modules into one file if the same entries need them, and many small files take longer to load than one.
 * So what is loaded later says that it also needs what is loaded already.
 */
function alsoNeeds(name) {
  if (name === START) return "";
  const names = WITHOUT_COMMANDS.test(name) ? [START] : [START, COMMANDS];
  return names.map((one) => `\nimport ${JSON.stringify(join(SRC, one))};`).join("");
}

/**
 * Modules of `src` read files beside them by `import.meta.url`. In the bundle, that is the URL of a file directly in
 * `dist`, so it is replaced by the module's own URL.
 */
const ownUrl = {
  name: "own-url",
  setup({ onLoad }) {
    const later = loadedLater();
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const name = relative(SRC, path);
      if (name.startsWith("..")) return undefined;
      const url = `new URL(${JSON.stringify(`./${name.replace(/\.ts$/, ".js")}`)}, import.meta.url).href`;
      const text = readFileSync(path, "utf8").replaceAll("import.meta.url", url);
      return { contents: text + (later.has(name) ? alsoNeeds(name) : ""), loader: "ts" };
    });
  },
};

/**
 * An eighth of the program, which it never reaches: BullMQ's other storages, its relay and its calendar of repeated jobs,
 * zod's messages in other languages, MCP's validator, prom-client's exemplars, nodemailer's types of attachments and its list of services, and undici's mocks, interceptors, WebSocket, EventSource and cookies.
 */
const LEFT_OUT = [
  { filter: /\/bullmq\/dist\/cjs\/postgres\/index\.js$/, contents: "module.exports = {};" },
  { filter: /\/cron-parser\/dist\/index\.js$/, contents: "module.exports = {};" },
  { filter: /\/zod\/v4\/locales\/index\.js$/, contents: 'export { default as en } from "./en.js";' },
  {
    filter: /\/undici\/lib\/(?:mock|interceptor|cache|web\/(?:websocket|eventsource|cookies))\/.*\.js$/,
    contents: "module.exports = {};",
  },
  // Our server brings its own check (`noValidation` in doors/mcp/server.ts).
  {
    filter: /\/@modelcontextprotocol\/server\/dist\/ajvProvider-[\w-]+\.mjs$/,
    contents: "export class n {} export { n as t };",
  },
  // prom-client asks it only for exemplars, which we do not collect.
  { filter: /\/@opentelemetry\/api\/dist\/index\.cjs$/, contents: "module.exports = {};" },
  {
    filter: /\/nodemailer\/dist\/esm\/xoauth2\/index\.js$/,
    contents: "export default class {}",
  },
  {
    filter: /\/nodemailer\/dist\/esm\/mime-funcs\/mime-types\.js$/,
    contents:
      'export const detectMimeType = () => "application/octet-stream"; export const detectExtension = () => "bin";',
  },
  { filter: /\/nodemailer\/dist\/esm\/well-known\/services\.js$/, contents: "export const services = {};" },
  {
    filter:
      /\/bullmq\/dist\/cjs\/(?:classes\/(?:redis-relay-backend|valkey-glide-client)|scripts\/(?:relay\w+|addParentJob)-\d+)\.js$/,
    contents: "module.exports = {};",
  },
];

const leaveOut = {
  name: "leave-out",
  setup({ onLoad, onEnd }) {
    const found = new Set();
    for (const { filter, contents } of LEFT_OUT)
      onLoad({ filter }, () => {
        found.add(filter);
        return { contents, loader: "js" };
      });
    onEnd(() => {
      const missing = LEFT_OUT.filter(({ filter }) => !found.has(filter));
      if (missing.length > 0) return { errors: [{ text: `nothing is at ${missing[0].filter} any more` }] };
    });
  },
};

/** Large dependencies, whose own names nobody reads in a stack trace. None of them asks for the name of a class. */
const SHORTENED =
  /\/node_modules\/(?:nodemailer\/dist\/esm|@agentclientprotocol\/sdk\/dist|@modelcontextprotocol\/server\/dist)\/.*\.m?js$/;

const shorten = {
  name: "shorten",
  setup({ onLoad }) {
    onLoad({ filter: SHORTENED }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, "utf8"), {
        minifyIdentifiers: true,
        keepNames: false,
      });
      return { contents: code, loader: "js" };
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

const COMMON = {
  absWorkingDir: ROOT,
  bundle: true,
  splitting: true,
  format: "esm",
  metafile: true,
  logLevel: "warning",
};

/** Returns the names of the files in `dist`. */
export async function bundle() {
  const program = await build({
    ...COMMON,
    entryPoints: { errand: "src/main.ts" },
    outdir: "dist",
    chunkNames: "errand-[hash]",
    platform: "node",
    target: "node20.19",
    minifySyntax: true,
    minifyWhitespace: true,
    banner: { js: BANNER },
    plugins: [ownUrl, leaveOut, shorten],
    // Those of alsoNeeds() load nothing.
    logOverride: { "ignored-bare-import": "silent" },
  });
  // For Node, Deno, Bun and the bundlers of pages alike, so it has nothing of one platform. Bundlers leave out what a
  // page does not use by its comments.
  const library = await build({
    ...COMMON,
    entryPoints: { index: "src/index.ts", schema: "src/schema/index.ts" },
    outdir: "dist/library",
    chunkNames: "shared-[hash]",
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "es2023",
    external: ["node:*"],
  });
  for (const path of Object.keys(program.metafile.outputs)) removeBanner(join(ROOT, path));
  for (const path of Object.keys(library.metafile.outputs)) markUnused(join(ROOT, path));
  const page = await bundleConsole();
  const inputs = [program, library].flatMap(({ metafile }) => Object.keys(metafile.inputs));
  writeFileSync(join(ROOT, "dist/licenses.txt"), licenses([...inputs, ...page.inputs]));
  const outputs = [program, library].flatMap(({ metafile }) => Object.keys(metafile.outputs));
  const names = outputs.map((path) => relative("dist", path));
  return [...names, "licenses.txt", ...page.outputs.map((name) => `console/${name}`)];
}

/** Most files call no `require`, and making one takes time at each start. */
function removeBanner(path) {
  const text = readFileSync(path, "utf8");
  const rest = text.replace(`${BANNER}\n`, "");
  if (!/\brequire\b/.test(rest)) writeFileSync(path, rest);
}

/** A bundler may leave out a CommonJS package whose exports nobody uses, which esbuild does not say. */
function markUnused(path) {
  const calls =
    /(?<=^var \w+ = )(?:__commonJS\(|__toESM\((?=require_))|(?<=^var \w+ = __toESM\()require_\w+\(\)/gm;
  writeFileSync(path, readFileSync(path, "utf8").replaceAll(calls, "/* @__PURE__ */ $&"));
}

/** The licences of the packages of which the bundle has copies. */
function licenses(inputs) {
  const folders = new Set();
  for (const input of inputs) {
    const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? [];
    if (folder !== undefined) folders.add(folder);
  }
  const seen = new Map();
  return [...folders]
    .sort()
    .map((folder) => {
      const path = join(ROOT, folder);
      const manifest = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
      const { name, version, license } = manifest;
      const files = readdirSync(path).filter((file) => /^licen[cs]e/i.test(file));
      const texts = files.map((file) => readFileSync(join(path, file), "utf8").trim());
      if (texts.length === 0) texts.push(textOf(manifest));
      const { taken, other = /$^/ } = TAKEN[license] ?? {};
      const short = texts.map((text) =>
        withReferences(text.replace(other, "").trim(), `${name} ${version}`, seen),
      );
      const said = taken ? `${license}, used under ${taken}` : license;
      return [`${name} ${version} (${said})`, ...short].join("\n\n");
    })
    .join("\n\n---\n\n");
}

/** Of licences to choose from, the one that we take, and the text of the other. */
const TAKEN = {
  "(MPL-2.0 OR Apache-2.0)": {
    taken: "Apache-2.0",
    other: /^Mozilla Public License Version 2\.0\n=+\n[\s\S]*$/m,
  },
};

/** What is the same in the licences of many packages: without it, the file would be three times as long. */
const COMMON_TEXTS = [
  /Permission is hereby granted, free of charge[\s\S]*?OTHER DEALINGS IN THE\s+SOFTWARE\.?/i,
  /Apache License\s+Version 2\.0, January 2004[\s\S]*?END OF TERMS AND CONDITIONS/,
  /APPENDIX: How to apply the Apache License[\s\S]*?limitations under the License\./,
];

/** Names the package where a text appears first instead of repeating it; the copyright of each package stays. */
function withReferences(text, name, seen) {
  return COMMON_TEXTS.reduce(
    (whole, pattern) =>
      whole.replace(pattern, (common) => {
        const key = common.replace(/\s+/g, " ").toLowerCase();
        const first = seen.get(key);
        if (first === undefined) seen.set(key, name);
        return first === undefined
          ? common
          : `[Here follows, word for word, the text that ${first} has above.]`;
      }),
    text,
  );
}

/** The licence of a package that names it and has no file of it. */
function textOf({ name, license, author: given }) {
  const author = given?.name ?? given;
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
