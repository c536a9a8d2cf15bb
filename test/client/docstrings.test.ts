/** Each class and function that the library exports has a docstring, and so has each public method. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const read = (path: string): string => readFileSync(new URL(`../../src/${path}`, import.meta.url), "utf8");

/** Each name that src/index.ts exports, types too, with its file. */
const exported = [...read("index.ts").matchAll(/export (?:type )?\{([^}]*)\} from "\.\/([^"]+)"/g)].flatMap(
  ([, names = "", path = ""]) =>
    [...names.matchAll(/(?:type )?(\w+)(?: as \w+)?/g)].map(([, name = ""]) => ({ name, path })),
);

/** Without a docstring in the line before: this class, interface or function, or a method of it. */
function undocumented({ name, path }: { name: string; path: string }): string[] {
  const lines = read(path).split("\n");
  const start = lines.findIndex((line) =>
    new RegExp(`^export (?:async )?(?:class|interface|function) ${name}\\b`).test(line),
  );
  if (start < 0) return [];
  const end = lines.findIndex((line, index) => index > start && line === "}");
  const isBare = (index: number): boolean => !lines[index - 1]?.endsWith("*/");
  const isOptions = lines[start]?.startsWith("export interface");
  const methods = lines.slice(start + 1, end).flatMap((line, index) => {
    const [, method] = /^ {2}(?:async )?\*?([a-z]\w*)(?:<[^(]*)?\(/.exec(line) ?? [];
    return method && method !== "constructor" && isBare(start + 1 + index) ? [`${name}.${method}`] : [];
  });
  return [...(isBare(start) && !isOptions ? [name] : []), ...methods];
}

test("every exported class and function and every public method has a docstring", () => {
  expect(exported.length).toBeGreaterThan(80);
  expect(exported.flatMap(undocumented)).toEqual([]);
});
