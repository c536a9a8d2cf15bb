/**
 * Writes the types of the library: those of the modules that its two entries reach, and a copy of those of zod, with which
 * they are written. So the package depends on no other one.
 */
import * as fs from "node:fs";
import { dirname, join, relative } from "node:path";
import { ROOT } from "./steps.mjs";

const ENTRIES = ["index.d.ts", "schema/index.d.ts"];
const ZOD = join(ROOT, "node_modules/zod");
/** The specifier of an import, of an export, and of a type in place. */
const SPECIFIER = /(\bfrom |^import |\bimport\()"([^"]+)"/gm;

/** Copies from `source` to `target`. Returns the names of the files. */
export function writeTypes(source, target) {
  const written = new Map();
  const add = (folder, name, place) => {
    const path = join(place, name);
    if (written.has(path)) return;
    const text = fs.readFileSync(join(folder, name), "utf8");
    written.set(path, "");
    const rewritten = text.replaceAll(SPECIFIER, (whole, before, specifier) => {
      if (specifier === "zod") {
        add(ZOD, "index.d.ts", "zod");
        return `${before}"${relativeTo(path, "zod/index.js")}"`;
      }
      if (!specifier.startsWith("."))
        throw new Error(`${path} imports ${specifier}, whose types are not in the package`);
      add(folder, join(dirname(name), specifier).replace(/\.(?:js|ts)$/, ".d.ts"), place);
      return whole;
    });
    written.set(path, narrowed(rewritten.replace(/^\/\/# sourceMappingURL=.*\n?/m, "")));
  };
  for (const entry of ENTRIES) add(source, entry, "");
  for (const [path, text] of written) {
    const file = join(target, path);
    fs.mkdirSync(dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
  }
  return [...written.keys()];
}

/** Indents by one space where the compiler indents by four: inferred types are deep, so a third of their text is indentation. */
const narrowed = (text) => text.replaceAll(/^(?: {4})+/gm, (spaces) => " ".repeat(spaces.length / 4));

function relativeTo(path, other) {
  const found = relative(dirname(path), other);
  return found.startsWith(".") ? found : `./${found}`;
}
