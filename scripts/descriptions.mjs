/**
 * Collects the comments on the schemas in `src/schema` and `src/doors/rest`, as the descriptions of the API. A comment
 * before a member of an object describes the value of the member, wherever zod takes it from there: `extend`, `omit`,
 * `shape`, a spread. So the sources are bundled with each such value wrapped in a call that attaches the comment, and the
 * description is rendered from that bundle. Limit: a value that is no schema has no description.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { parseSync } from "oxc-parser";
import { ROOT } from "./steps.mjs";

const SRC = join(ROOT, "src");
const COMMENTED = /^(?:schema|doors\/rest)\//;
const ATTACH = `import * as z from "zod";
const attach = (schema, description) => {
  z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), description });
  return schema;
};
const WRAPPERS = ["optional", "nullable", "default", "prefault"];
/** With a wrapper, what it wraps is described, too: \`unwrap()\` keeps the description. */
export function describedMember(value, text) {
  if (!(value instanceof z.ZodType)) return value;
  const { def } = value;
  if (!WRAPPERS.includes(def.type)) return attach(value.clone(def, { parent: true }), text);
  return attach(value.clone({ ...def, innerType: describedMember(def.innerType, text) }, { parent: true }), text);
}
export function describeConstant(value, text) {
  if (value instanceof z.ZodType) attach(value, text);
}
`;

/** By place: `Delegation.lease.worker_id`. */
export async function collectDescriptions() {
  const folder = mkdtempSync(join(ROOT, "build", ".described-"));
  try {
    const outfile = join(folder, "descriptions.mjs");
    await build({
      stdin: {
        contents: `export { ROUTES } from "./doors/http/app.ts"; export { textsOf } from "./doors/openapi/document.ts";`,
        resolveDir: SRC,
        loader: "ts",
      },
      outfile,
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      packages: "external",
      logLevel: "error",
      plugins: [{ name: "comments", setup: attachComments }],
    });
    const { ROUTES, textsOf } = await import(pathToFileURL(outfile).href);
    return textsOf(ROUTES);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function attachComments({ onResolve, onLoad }) {
  onResolve({ filter: /^errand:attach$/ }, ({ path }) => ({ path, namespace: "attach" }));
  onLoad({ filter: /.*/, namespace: "attach" }, () => ({ contents: ATTACH, loader: "js", resolveDir: ROOT }));
  onLoad({ filter: /\.ts$/ }, ({ path }) => {
    const name = relative(SRC, path);
    if (name.startsWith("..")) return undefined;
    const text = readFileSync(path, "utf8");
    const contents = COMMENTED.test(name) ? withDescriptions(name, text) : text;
    return {
      contents: contents.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)),
      loader: "ts",
    };
  });
}

/** The module, with its comments as calls. */
export function withDescriptions(name, text) {
  const { program, comments, errors } = parseSync(name, text);
  if (errors.length > 0) throw new Error(`${name}: ${errors[0].message}`);
  const before = new Map(
    comments.flatMap(({ type, value, end }) => {
      if (type !== "Block" || !value.startsWith("*")) return [];
      const next = end + (text.slice(end).search(/\S/) ?? 0);
      return [[next, plainText(value)]];
    }),
  );
  const exported = new Set(
    program.body.flatMap(({ declaration }) =>
      declaration?.type === "VariableDeclaration" ? declaration.declarations.map(({ id }) => id.name) : [],
    ),
  );
  const inserts = [];
  const constants = new Map();
  // The type's comment says what it is, the constant's what holds for it.
  const describe = (constant, comment, first) => {
    const texts = constants.get(constant) ?? [];
    constants.set(constant, first ? [comment, ...texts] : [...texts, comment]);
  };
  visit(program, (node) => {
    const comment = before.get(node.start);
    if (comment === undefined) return;
    if (node.type === "Property" && !node.computed) {
      const call = `describedMember(`;
      inserts.push([node.value.start, node.shorthand ? `${node.key.name}: ${call}` : call]);
      inserts.push([node.value.end, `, ${JSON.stringify(comment)})`]);
    }
    if (node.type === "ExportNamedDeclaration") {
      const { declaration } = node;
      if (declaration?.type === "VariableDeclaration")
        describe(declaration.declarations[0].id.name, comment, false);
      const named = schemaOf(declaration, exported);
      if (named !== undefined) describe(named, comment, true);
    }
  });
  inserts.sort(([a], [b]) => b - a);
  let described = text;
  for (const [at, insert] of inserts) described = described.slice(0, at) + insert + described.slice(at);
  const calls = [...constants].map(
    ([constant, texts]) => `describeConstant(${constant}, ${JSON.stringify(texts.join(" "))});`,
  );
  return ['import { describedMember, describeConstant } from "errand:attach";', described, ...calls].join(
    "\n",
  );
}

/** `xSchema` for `type X`, by its name or by `z.infer<typeof xSchema>`. */
function schemaOf(declaration, constants) {
  if (declaration?.type !== "TSTypeAliasDeclaration") return undefined;
  const { name } = declaration.id;
  const byName = `${name[0].toLowerCase()}${name.slice(1)}Schema`;
  const [inferred] = queriesIn(declaration.typeAnnotation);
  return constants.has(byName) ? byName : inferred;
}

/** The constants of `z.infer<typeof …>`, also as a part of an intersection. */
function queriesIn({ type, types = [], typeName, typeArguments }) {
  if (type === "TSIntersectionType") return types.flatMap(queriesIn);
  if (typeName?.left?.name !== "z" || !["infer", "input", "output"].includes(typeName.right.name)) return [];
  const [of] = typeArguments.params;
  return of.type === "TSTypeQuery" ? [of.exprName.name] : [];
}

function visit(node, see) {
  if (Array.isArray(node)) for (const one of node) visit(one, see);
  else if (typeof node === "object" && node !== null) {
    if (typeof node.type === "string") see(node);
    for (const member of Object.values(node)) visit(member, see);
  }
}

/** A comment's text, without its stars; a tag and what follows it are for people who read the source. */
function plainText(comment) {
  const lines = comment
    .slice(1)
    .split("\n")
    .map((line) => line.replace(/^\s*\*? ?/, "").trimEnd());
  const [text] = lines.join("\n").split(/^@/m);
  return text
    .replaceAll(/\{@link ([^}]+)\}/g, "`$1`")
    .trim()
    .split(/\n\s*\n/)
    .map((part) => part.replaceAll("\n", " "))
    .join("\n\n");
}
