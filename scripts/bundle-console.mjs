/**
 * Bundles the console (`src/console`) for browsers into `dist/console`: names with a hash of the content, so that a browser
 * keeps each file for good, and each file compressed in advance. Fails if the page has grown beyond its limits.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, context, transform } from "esbuild";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const OUT = join(ROOT, "dist/console");

/**
 * In bytes after gzip. The first load is the page, its styles, its script and what the script imports at once. A part is
 * what is loaded later, with what it imports and the first load does not have.
 */
const LIMITS = { firstLoad: 60_000, part: 40_000, everything: 256_000 };

/**
 * Leaves out what the page never calls, a quarter of it: zod's export of schemas as JSON Schema, its compiler (which the
 * page's security policy forbids), its codecs, its care for values with cycles (JSON has none), its checks of e-mail
 * addresses and the like, its English messages; and of ours the words for what a schema refuses (the broker checks what
 * the page sends), the texts of limits, the list of audited actions, the checks of budgets, of usage, of subscriptions, of rules and of the schemas that agents ask with, and the clients' proxies, batches,
 * bulk changes, inbox, waits, nodes of trees, checks of options and errors of models' providers (the agents of the demo ask no model).
 */
const lean = {
  name: "lean",
  setup({ onLoad }) {
    onLoad(
      { filter: /zod\/v4\/core\/(?:to-json-schema|json-schema-processors|memoizer)\.js$/ },
      ({ path }) => {
        const names = readFileSync(path, "utf8").matchAll(/^export (?:const|function) (\w+)/gm);
        return { contents: [...names].map(([, name]) => `export const ${name} = () => {};`).join("\n") };
      },
    );
    onLoad({ filter: /zod\/v4\/classic\/schemas\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8")
        .replaceAll(/this\.check\(core\._\w+\(Zod\w+, params\)\)/g, "undefined")
        .replaceAll("$ZodObjectJIT", "$ZodObject")
        .replaceAll(/^ *inst\._zod\.processJSONSchema = .*;$/gm, "")
        // As a member of the index, all of it would stay in the bundle.
        .replace('{ util } from "../core/index.js"', '* as util from "../core/util.js"')
        .replaceAll("core.util.", "util."),
    }));
    onLoad({ filter: /zod\/v4\/classic\/parse\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replaceAll(
        /core\._(?:safe)?(?:en|de)code(?:Async)?\(\w+\)/gi,
        "undefined",
      ),
    }));
    onLoad({ filter: /zod\/v4\/locales\/en\.js$/ }, () => ({
      contents: "export default () => ({ localeError: () => undefined });",
    }));
    onLoad({ filter: /src\/schema\/json-schema\/check-schema\.ts$/ }, () => ({
      contents: "export const schemaIssues = () => []; export const isEnforceable = () => true;",
    }));
    onLoad({ filter: /src\/schema\/issues\.ts$/ }, () => ({
      contents: [
        "export const readAs = (schema, value) => schema.safeParse(value);",
        'export const issuesOf = () => ({ text: "the answer does not fit" });',
      ].join("\n"),
    }));
    onLoad({ filter: /src\/schema\/phrases\.ts$/ }, () => ({
      contents: "export const phrase = () => undefined;",
    }));
    onLoad({ filter: /src\/client\/environment-fetch\.ts$/ }, () => ({
      contents: "export const environmentFetch = (input, init) => globalThis.fetch(input, init);",
    }));
    onLoad({ filter: /src\/client\/(?:batch|bulk|inbox|nodes|wait)\.ts$/ }, ({ path }) => {
      const names = readFileSync(path, "utf8").matchAll(/^export (?:async )?function\*? (\w+)/gm);
      return { contents: [...names].map(([, name]) => `export const ${name} = () => {};`).join("\n") };
    });
    onLoad({ filter: /src\/client\/provider-errors\.ts$/ }, () => ({
      contents: "export const providerError = () => null; export const providerUnavailable = () => null;",
    }));
    onLoad({ filter: /src\/client\/delegator\.ts$/ }, ({ path }) => ({
      // What only checks its options need not be async.
      contents: readFileSync(path, "utf8")
        .replaceAll(/^ +requireKnown\(.*\);\n/gm, "")
        .replaceAll(/ async (delegateMany|wait|cancel|answer|approve|deny|message|redrive|nodes)\(/g, " $1("),
      loader: "ts",
      resolveDir: dirname(path),
    }));
    onLoad({ filter: /src\/schema\/(?:budget|notice|rule|subscription|usage|votes)\.ts$/ }, ({ path }) => {
      const names = readFileSync(path, "utf8").matchAll(/^export const (\w+Schema)/gm);
      const schemas = [...names].map(([, name]) => `export const ${name} = /* @__PURE__ */ z.unknown();`);
      return {
        contents: ['import * as z from "zod";', ...schemas, "export const isLimiting = () => true;"].join(
          "\n",
        ),
        resolveDir: dirname(path),
      };
    });
    onLoad({ filter: /src\/schema\/(?:json-schema\/)?[a-z0-9-]+\.ts$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, "utf8"), { loader: "ts" });
      return {
        contents:
          path === LIMITS_FILE
            ? await valuesOnly(code)
            : droppable(withoutActions(withoutReasons(await withNumbers(code)))),
        loader: "js",
      };
    });
  },
};

const LIMITS_FILE = join(ROOT, "src/schema/limits.ts");

async function limitsOf(code) {
  const { LIMITS: limits } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  return Object.entries(limits).map(([name, { value }]) => [name, { value }]);
}

const valuesOnly = async (code) =>
  `export const LIMITS = ${JSON.stringify(Object.fromEntries(await limitsOf(code)))};`;

let limits;
/** Writes the numbers into the code that uses them, so that esbuild drops the table where nothing else does. */
async function withNumbers(code) {
  limits ??= transform(readFileSync(LIMITS_FILE, "utf8"), { loader: "ts" }).then(({ code }) =>
    limitsOf(code),
  );
  const byName = new Map(await limits);
  return code.replaceAll(/\bLIMITS\.(\w+)\.value\b/g, (_, name) => String(byName.get(name).value));
}

/** Styles that a script imports: their text, minified. */
const stylesAsText = {
  name: "styles as text",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /\.css$/ }, ({ path, resolveDir, kind }) =>
      kind === "import-statement" ? { path: join(resolveDir, path), namespace: "css-text" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "css-text" }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, "utf8"), { loader: "css", minify: true });
      return { contents: `export const styles = ${JSON.stringify(code)};`, watchFiles: [path] };
    });
  },
};

const CONSOLE = join(ROOT, "src/console");

/** The modules of the console that are loaded later, by their paths. Those of the worker for Markdown run without the page. */
function loadedLater() {
  const sources = readdirSync(CONSOLE, { recursive: true }).filter(
    (name) => /\.tsx?$/.test(name) && !name.startsWith("markdown"),
  );
  return new Set(
    sources.flatMap((name) => {
      const text = readFileSync(join(CONSOLE, name), "utf8");
      return [...text.matchAll(/import\("(\.[^"]+)"\)/g)].map(([, to]) => join(CONSOLE, dirname(name), to));
    }),
  );
}

/**
 * What is loaded later imports the frame, which is there already: so esbuild puts all that the frame needs into one file,
 * and not into one for each set of parts that also need it.
 */
const oneFrame = {
  name: "one frame",
  setup({ onLoad, onStart }) {
    let parts = new Set();
    onStart(() => {
      parts = loadedLater();
    });
    onLoad({ filter: /src\/console\/.*\.tsx?$/ }, ({ path }) => {
      if (!parts.has(path)) return undefined;
      const frame = JSON.stringify(join(CONSOLE, "app/shell.tsx"));
      return {
        contents: `${readFileSync(path, "utf8")}\nexport { Shell as frame } from ${frame};`,
        loader: path.endsWith("x") ? "tsx" : "ts",
        resolveDir: dirname(path),
      };
    });
  },
};

/** Leaves out why a text is no choice, or does not match a pattern: the page asks only whether it is. */
const withoutReasons = (code) =>
  code
    .replaceAll(/(z\.enum\(\[[^\]]*\]), \{ error: [^}]*\}/g, "$1")
    .replaceAll(
      /(\.regex\(\s*(?:[A-Z_]+|\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*)),\s*"[^"\n]*"\s*\)/g,
      "$1)",
    );

/** Leaves out the list of audited actions: the words for them are with the log, which is loaded later. */
const withoutActions = (code) =>
  code.replace(/(const auditActionSchema = )z\.enum\(\[[^\]]*\]\)/, "$1z.string()");

/** Each schema becomes a call without side effects, so that esbuild drops those that the page does not use. */
function droppable(code) {
  const schemas = /^((?:export )?const \w+Schema = )([\s\S]*?);\n(?=\S|$)/gm;
  return code.replaceAll(schemas, "$1/* @__PURE__ */ (() => $2)();\n");
}

const OPTIONS = {
  absWorkingDir: ROOT,
  entryPoints: {
    console: "src/console/main.tsx",
    styles: "src/console/styles/styles.css",
    icon: "src/console/icon.svg",
    answer: "src/console/answer/main.ts",
    "answer-styles": "src/console/answer/answer.css",
    sw: "src/console/push/worker.ts",
  },
  outdir: "dist/console",
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  loader: { ".svg": "copy" },
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "browser",
  target: ["es2022", "chrome111", "firefox115", "safari16.4"],
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  plugins: [lean, stylesAsText, oneFrame],
  write: false,
  metafile: true,
  logLevel: "warning",
};

/** Returns the paths of the sources, for the list of licences, and the names of the files. */
export async function bundleConsole() {
  const result = await build(OPTIONS);
  const sizes = write(result);
  const firstLoad = `first load ${kilobytes(sizes.firstLoad)} of ${kilobytes(LIMITS.firstLoad)}`;
  const everything = `everything ${kilobytes(sizes.everything)} of ${kilobytes(LIMITS.everything)}`;
  const parts = sizes.parts.filter(({ size }) => size > LIMITS.part);
  if (sizes.firstLoad > LIMITS.firstLoad || sizes.everything > LIMITS.everything || parts.length > 0) {
    const tooLarge = parts.map(
      ({ entry, size }) => `, ${entry} ${kilobytes(size)} of ${kilobytes(LIMITS.part)}`,
    );
    throw new Error(`the console is too large after gzip: ${firstLoad}, ${everything}${tooLarge.join("")}`);
  }
  return { inputs: Object.keys(result.metafile.inputs), outputs: sizes.names };
}

/** Reloads the page; only in what `watchConsole` writes. */
const RELOADER = "src/console/dev.ts";

/** Bundles again whenever a source changes, and reloads the pages that are open. */
export async function watchConsole() {
  const rewrite = {
    name: "rewrite",
    setup: ({ onEnd }) => onEnd((result) => void (result.errors.length === 0 && write(result))),
  };
  const watching = await context({
    ...OPTIONS,
    entryPoints: { ...OPTIONS.entryPoints, dev: RELOADER },
    plugins: [lean, stylesAsText, oneFrame, rewrite],
    minify: false,
  });
  await watching.rebuild();
  await watching.watch();
}

/** The service worker has one name in all versions: by it, a browser finds the next one. */
const nameOf = (path) => basename(path).replace(/^sw-\w{8}\.js$/, "sw.js");

function write({ outputFiles, metafile }) {
  const contents = new Map(outputFiles.map(({ path, contents }) => [nameOf(path), contents]));
  const outputs = Object.entries(metafile.outputs).map(([path, output]) => ({
    ...output,
    name: nameOf(path),
  }));
  const named = (entry) => outputs.find(({ entryPoint }) => entryPoint === entry)?.name;
  const script = named(OPTIONS.entryPoints.console);
  const styles = named(OPTIONS.entryPoints.styles);
  const reloader = named(RELOADER);
  const first = importedAtOnce(script, outputs);
  const page = readFileSync(join(ROOT, "src/console/page.html"), "utf8")
    .replace("{styles}", styles)
    .replace("{icon}", named(OPTIONS.entryPoints.icon))
    .replace("{script}", script)
    .replace(
      "{preloads}",
      [
        ...first.map((name) => `<link rel="modulepreload" href="console/${name}">`),
        ...(reloader ? [`<script type="module" src="console/${reloader}"></script>`] : []),
      ].join("\n"),
    );
  contents.set("index.html", Buffer.from(page));
  const answer = readFileSync(join(ROOT, "src/console/answer/page.html"), "utf8")
    .replace("{styles}", named(OPTIONS.entryPoints["answer-styles"]))
    .replace("{icon}", named(OPTIONS.entryPoints.icon))
    .replace("{script}", named(OPTIONS.entryPoints.answer));
  contents.set("answer.html", Buffer.from(answer));

  mkdirSync(OUT, { recursive: true });
  const names = [];
  const sizeOf = new Map();
  for (const [name, content] of contents) {
    const small = gzipSync(content, { level: 9 });
    sizeOf.set(name, small.length);
    put(name, content);
    put(`${name}.gz`, small);
    put(`${name}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
    names.push(name, `${name}.gz`, `${name}.br`);
  }
  // The files that an older page names go last.
  for (const old of readdirSync(OUT)) if (!names.includes(old)) rmSync(join(OUT, old), { force: true });
  const sum = (some) => some.reduce((total, name) => total + sizeOf.get(name), 0);
  const parts = outputs
    .filter(({ name, entryPoint }) => entryPoint && name.endsWith(".js") && name !== script)
    .map(({ name, entryPoint }) => ({
      entry: entryPoint,
      size: sum(
        [name, ...importedAtOnce(name, outputs)].filter((one) => !first.includes(one) && one !== script),
      ),
    }));
  return {
    firstLoad: sum([...first, script, styles, "index.html"]),
    everything: sum([...sizeOf.keys()]),
    parts,
    names,
  };
}

function put(name, content) {
  writeFileSync(join(OUT, name), content);
}

/** The files that the browser needs before the script can run. */
function importedAtOnce(name, outputs, found = new Set()) {
  const { imports = [] } = outputs.find((output) => output.name === name) ?? {};
  for (const { path, kind } of imports) {
    const next = basename(path);
    if (kind !== "import-statement" || found.has(next)) continue;
    found.add(next);
    importedAtOnce(next, outputs, found);
  }
  return [...found];
}

const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
