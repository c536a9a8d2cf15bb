/** The picture in README.md, and its walk-through with curl, pasted into a shell. Needs bash and curl. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { OPERATOR, startBroker } from "../support/broker.ts";
import { freshDir } from "../support/program.ts";

const page = readFileSync(new URL("../../README.md", import.meta.url), "utf8");

test("the first screen shows the console, in a picture of at most 200 kB", () => {
  const [introduction = ""] = page.split("\n## ");
  const [, picture = ""] = /!\[[^\]]+\]\(([^)]+)\)/.exec(introduction) ?? [];
  expect(picture).toBe("docs/console.png");
  expect(statSync(new URL(`../../${picture}`, import.meta.url)).size).toBeLessThanOrEqual(200_000);
});

test("the block runs as it is, and its delegation completes", async () => {
  const [, block = ""] = /```sh\n(token=[^`]*curl[^`]*)```/.exec(page) ?? [];
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
