/** CONTRIBUTING.md and ARCHITECTURE.md name only files and folders that exist; the glossary is sorted. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (page: string): string => readFileSync(join(ROOT, page), "utf8");
const FILE = /\.(?:ts|lua|mjs|json|md|yml)$/;

/** Texts in backquotes that look like a path: with a slash inside, or with a file extension. */
function namedPaths(page: string): string[] {
  const prose = read(page).replaceAll(/^```.*?^```/gms, "");
  return [...prose.matchAll(/`([\w.][\w./-]*)`/g)]
    .map(([, name = ""]) => name)
    .filter((name) => name.includes("/") || FILE.test(name));
}

const names = new Set(
  ["bench", "deploy", "docs", "examples", "scripts", "src", "test"]
    .flatMap((folder) => readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }))
    .concat(readdirSync(ROOT))
    .map((path) => basename(path)),
);
/** Commands write these. */
const ignored = read(".gitignore").split("\n");
const exists = (path: string): boolean =>
  ignored.includes(path) ||
  (path.includes("/") ? ["", "src"].some((base) => existsSync(join(ROOT, base, path))) : names.has(path));

test.each(["CONTRIBUTING.md", "ARCHITECTURE.md"])("every path in %s exists", (page) => {
  const named = namedPaths(page);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((path) => !exists(path))).toEqual([]);
});

test("the glossary is sorted, and every term has a meaning and a place", () => {
  const [, glossary = ""] = read("CONTRIBUTING.md").split("## Glossary");
  const rows = [...glossary.matchAll(/^\| ([^|]+) \| ([^|]+) \| `([^`]+)` \|$/gm)].map(
    ([, term = ""]) => term,
  );
  expect(rows.length).toBe(glossary.split("\n").filter((line) => /^\| (?!term|---)/.test(line)).length);
  expect(rows.length).toBeGreaterThan(40);
  expect(rows).toEqual([...new Set(rows)].sort());
});
