/** Every regular expression in the sources, found by parsing them. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseAst } from "vitest/node";
import { z } from "zod";

const SRC = fileURLToPath(new URL("../../src/", import.meta.url));

export interface Found {
  readonly file: string;
  readonly source: string;
  readonly flags: string;
}

export interface Regexes {
  readonly literals: readonly Found[];
  /** Files that build regular expressions at run time. */
  readonly made: readonly string[];
}

const literalSchema = z.object({ pattern: z.string(), flags: z.string() });

/** Whether a node calls `RegExp`, with or without `new`. */
function makesOne(node: object): boolean {
  if (!("callee" in node)) return false;
  const { callee } = node;
  return typeof callee === "object" && callee !== null && "name" in callee && callee.name === "RegExp";
}

function walk(node: unknown, visit: (node: object) => void): void {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) visit(node);
  for (const member of Object.values(node)) walk(member, visit);
}

export function regexes(): Regexes {
  const literals: Found[] = [];
  const made: string[] = [];
  for (const file of readdirSync(SRC, { recursive: true, encoding: "utf8" }).sort()) {
    if (!file.endsWith(".ts")) continue;
    const code = readFileSync(SRC + file, "utf8");
    walk(parseAst(code, { lang: "ts" }), (node) => {
      if ("regex" in node) {
        const { pattern: source, flags } = literalSchema.parse(node.regex);
        literals.push({ file, source, flags });
      }
      if (makesOne(node)) made.push(file);
    });
  }
  return { literals, made };
}
