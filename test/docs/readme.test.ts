/** The pictures in README.md and docs/console.md, and the walk-through with curl in docs/recipes.md, pasted into a shell. Needs bash and curl. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { OPERATOR, startBroker } from "../support/broker.ts";
import { freshDir } from "../support/program.ts";

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

test("the block runs as it is, and its delegation completes", async () => {
  const [, block = ""] = /```sh\n(token=[^`]*curl[^`]*)```/.exec(read("docs/recipes.md")) ?? [];
  const { url } = await startBroker();
  const cwd = freshDir();
  mkdirSync(join(cwd, ".errand"));
  writeFileSync(join(cwd, ".errand", "operator-token"), `${OPERATOR}\n`);
  const script = block.replace("http://127.0.0.1:4180", url);
  expect(script).toContain(url);
  const { stdout } = await promisify(execFile)("bash", ["-euc", script], { cwd, timeout: 180_000 });
  expect(stdout).toContain('"message":"counting"');
  expect(stdout).toContain("DELEGATION_COMPLETE");
}, 180_000);

test("the settings page lists every variable of the configuration", () => {
  const known = read("src/config.ts").matchAll(/^ {2}(ERRAND_\w+):/gm);
  const page = read("docs/settings.md");
  expect([...known].map(([, name = ""]) => name).filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
