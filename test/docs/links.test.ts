/** Links between the pages lead to files and headings that exist, and so do the pages that other files name. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const filesIn = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => !path.includes("node_modules") && statSync(join(ROOT, path)).isFile());

const PAGES = [...readdirSync(ROOT), ...filesIn("docs"), ...filesIn("examples")].filter((path) =>
  path.endsWith(".md"),
);
const LONG = 250;

/** A page without its code. */
const prose = (page: string): string => read(page).replaceAll(/^ *```.*?^ *```$/gms, "");

/** The anchors of a page's headings, as GitHub makes them. */
function anchors(page: string): string[] {
  const seen = new Map<string, number>();
  return [...prose(page).matchAll(/^#+ (.*)$/gm)].map(([, text = ""]) => {
    const anchor = text
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-");
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
}

/** Targets of links and pictures that are not on another site. */
const links = (page: string): string[] =>
  [...prose(page).matchAll(/\]\(\s*([^)\s]+)\s*\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target));

describe.each(PAGES)("%s", (page) => {
  test("its links lead to files and headings that exist", () => {
    const broken = links(page).filter((link) => {
      const [path = "", heading] = link.split("#");
      const target = path === "" ? page : join(dirname(page), path);
      if (!existsSync(join(ROOT, target))) return true;
      return heading !== undefined && !anchors(target).includes(heading);
    });
    expect(broken).toEqual([]);
  });
});

const isLong = (page: string): boolean => read(page).split("\n").length > LONG;

test.each(PAGES.filter(isLong))("%s begins with its contents, because it is long", (page) => {
  const [, top = ""] = /^((?:.*\n){60})/.exec(prose(page)) ?? [];
  expect([...top.matchAll(/\]\(#/g)].length).toBeGreaterThanOrEqual(4);
});

test("the index leads to every page", () => {
  const listed = links("docs/README.md").map((link) => join("docs", link.split("#")[0] ?? ""));
  const pages = PAGES.filter((page) => page.startsWith("docs/") && page !== "docs/README.md");
  expect(pages.filter((page) => !listed.includes(page))).toEqual([]);
});

test("a page that code, comments and configuration name exists", () => {
  const folders = ["bench", "deploy", "examples", "scripts", "src", "test"];
  const files = [...readdirSync(ROOT), ...folders.flatMap(filesIn)];
  const wrong = files
    .filter((path) => /\.(?:[cm]?[jt]sx?|py|ya?ml|json|conf|cfg|service|lua)$|file$/.test(path))
    .filter((path) => path !== relative(ROOT, fileURLToPath(import.meta.url)))
    .flatMap((path) =>
      [...read(path).matchAll(/(?<![\w/-])docs\/([\w-]{3,}\.(?:md|json|png))(?:#([\w-]+))?/g)]
        .filter(([, name = "", heading]) => {
          if (!existsSync(join(ROOT, "docs", name))) return true;
          return heading !== undefined && !anchors(`docs/${name}`).includes(heading);
        })
        .map(([named]) => `${path}: ${named}`),
    );
  expect(wrong).toEqual([]);
});
