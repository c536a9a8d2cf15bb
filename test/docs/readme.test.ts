/** The pictures in README.md and docs/console.md, the program in README.md, and the variables in docs/settings.md. */
import { execFile } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";

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

test("the program of the readme prints the text of its result, with the token in its environment", async () => {
  const [, program = ""] = /^```ts\n(.*?)^```$/ms.exec(read("README.md")) ?? [];
  const { url } = await startBroker();
  await client(url).agent("counter");
  const ran = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
    env: { PATH: process.env.PATH, ERRAND_URL: url, ERRAND_TOKEN: OPERATOR },
  });
  expect([ran.stdout, ran.stderr]).toEqual(["5\n", ""]);
});
