/** The pictures in README.md and docs/console.md, and the variables in docs/settings.md. */
import { readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";

const read = (page: string): string => readFileSync(new URL(`../../${page}`, import.meta.url), "utf8");

test.each([
  ["README.md", "docs/approval.png"],
  ["docs/console.md", "docs/console.png"],
])("the first screen of %s has its picture, of at most 200 kB", (page, picture) => {
  const [introduction = ""] = read(page).split("\n## ");
  const [, shown = ""] = /!\[[^\]]+\]\(([^)]+)\)/.exec(introduction) ?? [];
  const file = new URL(shown, new URL(`../../${page}`, import.meta.url));
  expect(file).toEqual(new URL(`../../${picture}`, import.meta.url));
  expect(statSync(file).size).toBeLessThanOrEqual(200_000);
});

test("the settings page lists every variable of the configuration", () => {
  const known = read("src/config.ts").matchAll(/^ {2}(ERRAND_\w+):/gm);
  const page = read("docs/settings.md");
  expect([...known].map(([, name = ""]) => name).filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
